"""A scripted model endpoint on loopback that speaks OpenAI's chat completions."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def call(identifier, name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": identifier, "type": "function", "function": function}


class Model:
    def __init__(self):
        self.requests = []
        self._answers = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                model.requests.append(json.loads(body))
                status, answer = model._next()
                payload = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_):
                """The checks speak for themselves."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def script(self, *answers):
        """Adds answers: a text, or a list of calls."""
        self._answers.extend(answers)

    def result(self, identifier):
        """The result of a call in the last request."""
        found = [m["content"] for m in self.requests[-1]["messages"] if m.get("tool_call_id") == identifier]
        return found[0] if found else None

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def _next(self):
        number = len(self.requests)
        if not self._answers:
            # 400 is not tried again, so a script that is too short shows at once.
            return 400, {"error": {"message": f"no answer is scripted for request {number}"}}
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            message, reason = {"role": "assistant", "content": answer}, "stop"
        else:
            message, reason = {"role": "assistant", "content": "", "tool_calls": answer}, "tool_calls"
        return 200, {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1767225600 + number,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
