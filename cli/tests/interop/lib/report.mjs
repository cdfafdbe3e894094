// One line a check. run.sh counts the lines, so a part that dies halfway cannot look better than it is.
import { inspect, isDeepStrictEqual } from 'node:util';

/** How long anything may take that is waited for. It only matters when something is broken. */
export const PATIENCE_MS = 15_000;

let part = '';
let failures = 0;

/** Says `ok` or `FAIL` with the name; `detail` explains a failure. */
export function check(name, holds, detail) {
  if (holds) {
    console.log(`ok   ${part}: ${name}`);
    return;
  }
  failures += 1;
  const told = typeof detail === 'string' ? detail : inspect(detail, { depth: 8, breakLength: 110 });
  console.log(`FAIL ${part}: ${name}\n     ${told.slice(0, 4000).replaceAll('\n', '\n     ')}`);
}

export function same(name, found, wanted) {
  check(name, isDeepStrictEqual(found, wanted), { found, wanted });
}

export function contains(name, text, needle) {
  check(name, typeof text === 'string' && text.includes(needle), { text, needle });
}

/** Runs one story; what it throws is a failed check of its own and does not stop the next story. */
export async function story(name, run) {
  part = name;
  try {
    await run();
  } catch (error) {
    check('runs to its end', false, error?.stack ?? error);
  }
}

/** Says that the part came to its end, and sets its exit code. */
export function conclude() {
  console.log(`end  ${process.argv[1].split('/').at(-1)}`);
  process.exitCode = failures === 0 ? 0 : 1;
}

/** `promise`, or an error that names what did not come in time. */
export function inTime(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out: ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A growing list that can be waited on. */
export class Watched {
  items = [];
  #waiting = [];

  push(item) {
    this.items.push(item);
    this.#waiting = this.#waiting.filter((look) => !look());
  }

  /** The first item from index `from` on that `fits`, as soon as it is there. */
  first(fits, what, from = 0) {
    const found = new Promise((resolve) => {
      const look = () => {
        const item = this.items.slice(from).find(fits);
        if (item !== undefined) resolve(item);
        return item !== undefined;
      };
      if (!look()) this.#waiting.push(look);
    });
    return inTime(found, what);
  }
}
