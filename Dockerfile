# docker build -t pocketbell . && docker run -p 127.0.0.1:8000:8000 -v pocketbell:/data pocketbell
# Not built where it was written (there was no Docker): the steps are those of `make run`, and were run one by one.
FROM python:3.12-slim-bookworm

RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home pocketbell && install -d -o pocketbell -m 700 /data
WORKDIR /app
COPY Makefile requirements.txt ./
RUN make .venv/installed
COPY . .
USER pocketbell
ENV HOST=0.0.0.0 DATA_DIR=/data PYTHONDONTWRITEBYTECODE=1
VOLUME /data
EXPOSE 8000
HEALTHCHECK CMD [".venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
CMD ["make", "run"]
