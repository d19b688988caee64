# `questree serve` over a mounted index, as a user without rights, on a root that cannot be written:
#   docker build -t questree .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -p 127.0.0.1:8080:8080 -e QUESTREE_TOKEN -e OPENAI_API_KEY \
#       -v "$PWD/indexes/mini:/index:ro" -v questree:/var/questree questree evidence-chain --lm openai/gpt-4.1-mini --retriever /index
FROM python:3.11-slim AS build
# PyTorch for the CPU; for a GPU, build with --build-arg TORCH_INDEX= and run with --gpus all.
ARG TORCH=torch==2.13.0
ARG TORCH_INDEX="--extra-index-url https://download.pytorch.org/whl/cpu"
RUN python -m venv /opt/questree && /opt/questree/bin/pip install --no-cache-dir $TORCH_INDEX "$TORCH"
COPY . /source
# The versions of the lock; its hashes hold for whole installs only.
RUN grep == /source/requirements.lock | sed 's/ \\$//' > /versions.txt \
    && /opt/questree/bin/pip install --no-cache-dir --constraint /versions.txt "/source[serve]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home questree && install -d -o questree /var/questree
COPY --from=build /opt/questree /opt/questree
ENV PATH=/opt/questree/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 \
    QUESTREE_CACHE=/var/questree/cache DSPY_CACHEDIR=/var/questree/dspy
USER questree
WORKDIR /var/questree
VOLUME /var/questree
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health', timeout=4)"]
# Its address is not loopback, so it wants a token: QUESTREE_TOKEN.
ENTRYPOINT ["questree", "serve", "--host", "0.0.0.0"]
