"""A stand-in for a server of Qdrant: the client's local mode behind Qdrant's own requests, with faults on order.

It holds that what we send fits the schema of the client, and how we take a server that fails. That Qdrant itself does
what local mode does is tested where `QDRANT_URL` names one.
"""

import json
import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response


class FakeQdrant:
    """Answers as Qdrant does, but first gives the answers of `faults`: each a status, headers and body.

    Attributes:
        asked: the requests so far, as ``PUT /collections/x/points``.
        version: that it says it has.
    """

    def __init__(self) -> None:
        from qdrant_client import QdrantClient

        self.client = QdrantClient(location=":memory:", force_disable_check_same_thread=True)
        self.asked: list[str] = []
        self.faults: list[tuple[int, dict[str, str], bytes]] = []
        self.version = "1.20.0"
        self.key: str | None = None
        self.after: Any = lambda asked: None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await request.body()
        self.asked.append(f"{request.method} {request.url.path}")
        await self._response(request, body)(scope, receive, send)
        self.after(self.asked[-1])

    def _response(self, request: Request, body: bytes) -> Response:
        if self.key is not None and request.headers.get("api-key") != self.key:
            return Response("Must provide an API key", 401)
        if len(body) > 32 << 20:
            return Response("Payload too large", 413)
        if self.faults:
            status, headers, content = self.faults.pop(0)
            return Response(content, status, headers)
        if request.url.path == "/":
            return Response(json.dumps({"title": "qdrant", "version": self.version}))
        found = re.fullmatch(r"/collections/([^/]+)(/.*)?", request.url.path)
        assert found, request.url.path
        name, path = found[1], found[2] or ""
        if request.method + path != "PUT" and not self.client.collection_exists(name):
            return Response(json.dumps({"status": {"error": f"Not found: Collection `{name}` doesn't exist!"}}), 404)
        if request.method + path == "PUT" and self.client.collection_exists(name):
            return Response(json.dumps({"status": {"error": f"Wrong input: Collection `{name}` already exists!"}}), 409)
        result = self._result(request.method + path, name, body)
        return Response(json.dumps({"result": result, "status": "ok", "time": 0.0}))

    def _result(self, asked: str, name: str, body: bytes) -> Any:
        from qdrant_client import models

        local = self.client
        if asked == "GET":
            return local.get_collection(name).model_dump(mode="json")
        if asked == "DELETE":
            return local.delete_collection(name)
        if asked == "PUT":
            made = models.CreateCollection.model_validate_json(body)
            return local.create_collection(name, made.vectors, made.sparse_vectors, metadata=made.metadata)
        if asked == "PATCH":
            return local.update_collection(name, metadata=models.UpdateCollection.model_validate_json(body).metadata)
        if asked == "POST/points":
            of = models.PointRequest.model_validate_json(body)
            return [
                one.model_dump(mode="json")
                for one in local.retrieve(name, of.ids, of.with_payload, of.with_vector or False)
            ]
        if asked == "POST/points/count":
            return {"count": local.count(name).count}
        if asked == "POST/points/query/batch":
            searches = models.QueryRequestBatch.model_validate_json(body).searches
            return [one.model_dump(mode="json") for one in local.query_batch_points(name, searches)]
        assert asked == "PUT/points", asked
        local.upsert(name, models.PointsList.model_validate_json(body).points)
        return {"operation_id": 0, "status": "completed"}
