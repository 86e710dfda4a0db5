/**
 * Runs the command line in the process of a spec: the start is paid once, and compiled code serves each run.
 *
 *     bin/hca.js ─► dist/checkout/…/cli/main.js ─► runCommandLine ◄─ hca, here: the same built modules
 *
 * A run owns process-wide state (standard output and error, exit code, folder, COLUMNS) while it lasts and restores it
 * afterwards. Runs are therefore sequential, for any number of callers. Tests of signals, a closed pipe, a full disk or
 * memory need a process of their own: {@link hcaProcess}.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { builtCheckout } from '../../build/checkout.ts';

/** The command line as a shell starts it. */
export const mainPath: string = fileURLToPath(new URL('../../bin/hca.js', import.meta.url));

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Surroundings {
  /** Folder that file names are relative to. */
  readonly cwd?: string;
  /** Width of the terminal; absent without a terminal. */
  readonly columns?: number;
}

export interface ProcessSurroundings extends Surroundings {
  /** Cores and memory available to the process. */
  readonly cores?: number;
}

type Run = (words: readonly string[]) => Promise<void>;
let built: Promise<Run> | undefined;

/** The modules that `hca` runs; both runs of a spec use one build. */
function builtCommandLine(): Promise<Run> {
  built ??= (async () => {
    const folder = builtCheckout();
    if (folder === undefined) throw new Error('the sources cannot be built');
    const url = pathToFileURL(join(folder, 'cli/command-line.js')).href;
    return ((await import(url)) as { readonly runCommandLine: Run }).runCommandLine;
  })();
  return built;
}

/** The runs that have begun or wait. */
let last: Promise<unknown> = Promise.resolve();

/** Runs `hca` with these arguments. */
export const hca = (...words: string[]): Promise<Ended> => hcaWithin({}, words);

/** Runs `hca` with these arguments, in a folder or on a terminal. */
export function hcaWithin(surroundings: Surroundings, words: readonly string[]): Promise<Ended> {
  const ended = last.then(() => oneRun(surroundings, words));
  last = ended.catch(() => undefined);
  return ended;
}

async function oneRun({ cwd, columns }: Surroundings, words: readonly string[]): Promise<Ended> {
  const run = await builtCommandLine();
  const before = { cwd: process.cwd(), columns: process.env['COLUMNS'], exitCode: process.exitCode };
  const [out, err] = [captured(process.stdout), captured(process.stderr)];
  process.exitCode = undefined;
  setColumns(columns?.toString());
  try {
    if (cwd !== undefined) process.chdir(cwd);
    await run(words);
    return { code: Number(process.exitCode ?? 0), out: out.text(), err: err.text() };
  } finally {
    out.end();
    err.end();
    process.chdir(before.cwd);
    setColumns(before.columns);
    process.exitCode = before.exitCode;
  }
}

function setColumns(columns: string | undefined): void {
  if (columns === undefined) delete process.env['COLUMNS'];
  else process.env['COLUMNS'] = columns;
}

/** Captures the output of a stream until `end`. */
function captured(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  const { write } = stream;
  const parts: Buffer[] = [];
  const keep = (chunk: string | Uint8Array): boolean => {
    parts.push(Buffer.from(chunk as string));
    return true;
  };
  stream.write = keep;
  return {
    text: () => Buffer.concat(parts).toString(),
    end: () => {
      stream.write = write;
    },
  };
}

/** Runs `hca` as a shell does, in a process of its own. */
export const hcaProcess = (...words: string[]): Promise<Ended> => hcaProcessWithin({}, words);

/** Runs `hca` in a process of its own, in a folder or on a terminal. */
export function hcaProcessWithin(
  { cwd, columns, cores }: ProcessSurroundings,
  words: readonly string[],
): Promise<Ended> {
  const { COLUMNS: _inherited, ...inherited } = process.env;
  const env = {
    ...inherited,
    ...(columns === undefined ? {} : { COLUMNS: `${columns}` }),
    ...(cores === undefined ? {} : { HCA_CORES: `${cores}` }),
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [mainPath, ...words], { cwd, env, maxBuffer: 2 ** 26 }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}
