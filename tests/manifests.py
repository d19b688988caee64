"""An index's manifest, changed by someone who knows how it is sealed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from questree.common.manifests import checksum_of
from questree.retrieval.indexes.contents import NAME, IndexManifest


def rewrite_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the manifest in place, and put its checksum right; gives the folder back."""
    content = json.loads((folder / NAME).read_text())
    change(content)
    manifest = IndexManifest.model_validate(content)
    sealed = manifest.model_copy(update={"checksum": checksum_of(manifest.model_dump(mode="json"))})
    (folder / NAME).write_text(sealed.model_dump_json(indent=2) + "\n")
    return folder
