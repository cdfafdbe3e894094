// Where a story takes place: a folder of its own, a model, and a mark on every process.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { WAXLOG } from './agent.mjs';
import { Model } from './model.mjs';
import { check, PATIENCE_MS } from './report.mjs';

const require = createRequire(import.meta.url);
const run = promisify(execFile);
const MARK = 'WAXLOG_INTEROP_MARK';
const OF_SERVERS = '-server';

export class Stage {
  static async set() {
    const stage = new Stage();
    // The real path: servers compare it with what they resolve themselves.
    stage.folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'waxlog-interop-')));
    stage.home = path.join(stage.folder, 'home');
    stage.work = path.join(stage.folder, 'work');
    mkdirSync(stage.work);
    stage.model = await Model.start();
    stage.id = randomUUID();
    return stage;
  }

  /** What the agent's process is marked with. Its servers do not inherit it. */
  get mark() {
    return { [MARK]: this.id };
  }

  /** An entry of `mcpServers`, with a mark for the server and all that it starts. */
  server(name, command, ...args) {
    return { name, command, args, env: [{ name: MARK, value: `${this.id}${OF_SERVERS}` }] };
  }

  /** An official server from npm. */
  npmServer(name, module, ...args) {
    return this.server(name, process.execPath, require.resolve(module), ...args);
  }

  everything() {
    return this.npmServer('everything', '@modelcontextprotocol/server-everything/dist/index.js');
  }

  filesystem() {
    return this.npmServer('fs', '@modelcontextprotocol/server-filesystem/dist/index.js', this.work);
  }

  /** The official server from PyPI. */
  time() {
    return this.server('time', path.join(process.env.PYTHON_BIN, 'mcp-server-time'), '--local-timezone', 'UTC');
  }

  /** Ids and command lines of the processes of this stage, or of its servers alone. */
  processes(ending = '') {
    const wanted = `${MARK}=${this.id}${ending}`;
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
        return environment.some((entry) => entry.startsWith(wanted)) ? [`${pid} ${command}`] : [];
      } catch {
        return []; // Gone meanwhile, or somebody else's.
      }
    });
  }

  servers() {
    return this.processes(OF_SERVERS);
  }

  nothingRuns(name) {
    return this.#gone(name, () => this.processes());
  }

  noServerRuns(name) {
    return this.#gone(name, () => this.servers());
  }

  /** The end of a stranger's child cannot be awaited, so this looks until it is so. */
  async #gone(name, left) {
    const deadline = Date.now() + PATIENCE_MS;
    while (left().length > 0 && Date.now() < deadline) await pause(10);
    check(name, left().length === 0, left());
  }

  /** Checks the logs with the program's own commands. */
  async logsHold() {
    for (const words of [['replay'], ['log', 'verify']]) {
      const name = `waxlog ${words.join(' ')} passes`;
      await run(WAXLOG, [...words, '--home', this.home]).then(
        () => check(name, true),
        (error) => check(name, false, `${error.stdout}${error.stderr}`),
      );
    }
  }

  /** Ends what is left and removes the folder. */
  clear() {
    this.model.stop();
    for (const line of this.processes()) process.kill(parseInt(line, 10), 'SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Runs `act` on a stage of its own. */
export async function onStage(act) {
  const stage = await Stage.set();
  try {
    await act(stage);
  } finally {
    stage.clear();
  }
}
