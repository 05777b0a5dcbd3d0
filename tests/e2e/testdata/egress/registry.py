# A registry of npm's with one package, tiny, that is made here. It prints what
# it is asked for.
import base64, hashlib, http.server, io, json, tarfile

def package():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, content in {"package.json": b'{"name":"tiny","version":"1.0.0"}', "index.js": b'module.exports = "from the registry"\n'}.items():
            info = tarfile.TarInfo("package/" + name)
            info.size, info.mode = len(content), 0o644
            t.addfile(info, io.BytesIO(content))
    return out.getvalue()

tarball = package()
packument = json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
    "name": "tiny", "version": "1.0.0", "dist": {"tarball": "http://registry:8000/tiny/-/tiny-1.0.0.tgz",
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()}}}}).encode()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("GET", self.path, flush=True)
        body = {"/tiny": packument, "/tiny/-/tiny-1.0.0.tgz": tarball}.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
