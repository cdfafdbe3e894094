"""The agent under the ACP client from PyPI, with the git server from PyPI.

Its models check every answer and every update, so what they refuse fails the story.
"""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import traceback
import uuid
from pathlib import Path

import acp
from acp import schema
from model import Model, call

WAXLOG = os.environ["WAXLOG_BINARY"]
MARK = "WAXLOG_INTEROP_MARK"
PATIENCE_S = 60
failures = 0


def check(name, holds, detail=None):
    global failures
    if holds:
        print(f"ok   ACP client of PyPI: {name}", flush=True)
    else:
        failures += 1
        print(f"FAIL ACP client of PyPI: {name}\n     {str(detail)[:4000]}", flush=True)


class Complaints(logging.Handler):
    """The library logs what it refuses of a notification and goes on."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.seen = []

    def emit(self, record):
        self.seen.append(self.format(record))


class Client:
    """Takes updates; it offers the agent nothing else."""

    def __init__(self):
        self.updates = []

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def ext_notification(self, method, params):
        """The agent's own notifications: a stranger may leave them unread."""

    def texts(self, kind):
        return [u.content.text for u in self.updates if isinstance(u, kind)]

    def ends(self):
        """Each call with its last status."""
        calls = (schema.ToolCallStart, schema.ToolCallProgress)
        return {u.tool_call_id: u.status for u in self.updates if isinstance(u, calls)}


class Stage:
    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.home = self.folder / "home"
        self.repository = self.folder / "hive"
        self.model = Model()
        self.mark = str(uuid.uuid4())
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        self.git_env = environment
        self.agent_env = environment | {
            "WAXLOG_HOME": str(self.home),
            "BUZZ_AGENT_PROVIDER": "openai",
            "OPENAI_COMPAT_API": "chat",
            "OPENAI_COMPAT_API_KEY": "no-key",
            "OPENAI_COMPAT_BASE_URL": self.model.url,
            "OPENAI_COMPAT_MODEL": "scripted",
            MARK: self.mark,
        }
        self.server = schema.McpServerStdio(
            name="git",
            command=str(Path(sys.executable).parent / "mcp-server-git"),
            args=["--repository", str(self.repository)],
            env=[schema.EnvVariable(name=MARK, value=self.mark)],
        )

    def repository_with_a_change(self):
        self.repository.mkdir()
        self.git("init", "--quiet")
        (self.repository / "bees.txt").write_text("mason\n")
        self.git("add", "bees.txt")
        who = ("-c", "user.name=Bee", "-c", "user.email=bee@example.org")
        self.git(*who, "commit", "--quiet", "-m", "Count the mason bee")
        (self.repository / "bees.txt").write_text("mason\ncarder\n")

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.repository, env=self.git_env, check=True)

    def agent(self, client):
        options = {"stderr": subprocess.DEVNULL}
        return acp.spawn_agent_process(client, WAXLOG, "agent", env=self.agent_env, transport_kwargs=options)

    def processes(self):
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(folder.name)
            except OSError:
                pass  # Gone meanwhile, or somebody else's.
        return found

    async def nothing_runs(self):
        # The end of a stranger's child cannot be awaited, so this looks until it is so.
        for _ in range(1000):
            if not self.processes():
                break
            await asyncio.sleep(0.01)
        check("nothing is left running", not self.processes(), self.processes())

    def logs_hold(self):
        for words in (["replay"], ["log", "verify"]):
            done = subprocess.run([WAXLOG, *words, "--home", self.home], capture_output=True, text=True)
            check(f"waxlog {' '.join(words)} passes", done.returncode == 0, done.stdout + done.stderr)


async def initialize(agent):
    me = schema.Implementation(name="waxlog-interop-python", version="1.0.0")
    return await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_info=me)


async def first_agent(stage):
    """A turn with tools and the session's methods; gives the session's id."""
    client = Client()
    async with stage.agent(client) as (agent, _):
        hello = await initialize(agent)
        check("initialize settles on the client's version", hello.protocol_version == acp.PROTOCOL_VERSION, hello)
        opened = await agent.new_session(cwd=str(stage.repository), mcp_servers=[stage.server])
        session = opened.session_id
        repo = str(stage.repository)
        stage.model.script(
            [
                call("log", "git__git_log", repo_path=repo, max_count=5),
                call("diff", "git__git_diff_unstaged", repo_path=repo),
                call("outside", "git__git_status", repo_path=str(stage.folder)),
            ],
            "One commit, one change.",
        )
        done = await agent.prompt(session_id=session, prompt=[acp.text_block("What is new in the hive?")])
        check("a prompt with tools ends", done.stop_reason == "end_turn", done)
        names = [t["function"]["name"] for t in stage.model.requests[0]["tools"]]
        check("the model is offered the tools of mcp-server-git", "git__git_commit" in names, names)
        check("the log", "Count the mason bee" in stage.model.result("log"), stage.model.result("log"))
        check("the change", "+carder" in stage.model.result("diff"), stage.model.result("diff"))
        denied = stage.model.result("outside")
        check("a path outside is an error", "outside" in denied, denied)
        order = [m["tool_call_id"] for m in stage.model.requests[-1]["messages"] if m["role"] == "tool"]
        check("results stand in call order", order == ["log", "diff", "outside"], order)
        check("every call is told to its end", set(client.ends().values()) == {"completed"}, client.ends())

        changed = await agent.set_config_option(session_id=session, config_id="model", value="another")
        values = [option.current_value for option in changed.config_options if option.category == "model"]
        check("the model can be changed", values == ["another"], changed)
        listed = await agent.list_sessions(cwd=repo)
        check("the session is listed", [s.session_id for s in listed.sessions] == [session], listed)
        await agent.close_session(session_id=session)
        try:
            await agent.prompt(session_id=session, prompt=[acp.text_block("Still there?")])
            check("a closed session takes no prompt", False)
        except acp.RequestError as error:
            check("a closed session takes no prompt", error.code == -32002, error)
    return session


async def second_agent(stage, session):
    """The session comes back: once told, once quietly."""
    client = Client()
    where = {"session_id": session, "cwd": str(stage.repository), "mcp_servers": [stage.server]}
    async with stage.agent(client) as (agent, process):
        await initialize(agent)
        await agent.load_session(**where)
        check("the history says what the user said",
              client.texts(schema.UserMessageChunk) == ["What is new in the hive?"], client.updates)
        check("what the model said",
              client.texts(schema.AgentMessageChunk) == ["One commit, one change."], client.updates)
        check("and the calls", list(client.ends()) == ["log", "diff", "outside"], client.ends())
        await agent.close_session(session_id=session)

        client.updates.clear()
        await agent.resume_session(**where)
        check("resume tells no history", client.updates == [], client.updates)
        stage.model.script([call("status", "git__git_status", repo_path=str(stage.repository))], "Still one change.")
        link = acp.resource_link_block(name="bees.txt", uri=(stage.repository / "bees.txt").as_uri())
        done = await agent.prompt(session_id=session, prompt=[acp.text_block("And now?"), link])
        check("a prompt goes on", done.stop_reason == "end_turn", done)
        said = str([m["content"] for m in stage.model.requests[-1]["messages"] if m["role"] == "user"])
        check("the chosen model is kept", stage.model.requests[-1]["model"] == "another", stage.model.requests[-1])
        check("with the earlier context", "What is new in the hive?" in said and "bees.txt]" in said, said)
        check("and its tools", "bees.txt" in stage.model.result("status"), stage.model.result("status"))
    check("the agent ends with code 0", process.returncode == 0, process.returncode)


async def main():
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    with tempfile.TemporaryDirectory(prefix="waxlog-interop-") as folder:
        stage = Stage(folder)
        try:
            stage.repository_with_a_change()
            session = await asyncio.wait_for(first_agent(stage), PATIENCE_S)
            await asyncio.wait_for(second_agent(stage, session), PATIENCE_S)
            check("the client's models took every message", complaints.seen == [], complaints.seen)
            await stage.nothing_runs()
            stage.logs_hold()
        except Exception:
            check("runs to its end", False, traceback.format_exc())
        finally:
            stage.model.stop()
    print("end  client.py", flush=True)
    return 0 if failures == 0 else 1


sys.exit(asyncio.run(main()))
