/** The packed package as its users have it: outside the repository, from JavaScript, TypeScript and a shell. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Declarations } from './declarations.ts';
import { itOfAll } from './extent.ts';
import { installPacked, repository } from './packed-package.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-package-'));
const installed = join(folder, 'node_modules', 'hca-emulator');
const bin = join(installed, 'bin', 'hca.js');
let files: readonly string[] = [];
/** Types whose members belong to the driver, the network and the fault tables, not to programs. */
const handles = new Set([
  ...['VerbsPlatform', 'VerbsCpu', 'KernelDevice', 'NicSoftware', 'SocketCalls'],
  ...[
    'FaultKind',
    'MachineConfig',
    'MessagingConfig',
    'ServeStart',
    'ServeOrder',
    'ServeReportParts',
    'DevicesReportParts',
  ],
]);

const run = (command: string, args: readonly string[], environment = {}): string =>
  execFileSync(command, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

/** Writes a file next to the installed package and returns its path. */
function written(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

beforeAll(() => {
  ({ files } = installPacked(folder));
  written('package.json', '{ "type": "module" }');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the package', () => {
  it('contains what its users need: compiled code with types, pages, licence; no sources and no tests', () => {
    for (const path of [
      'dist/package/index.js',
      'dist/package/index.d.ts',
      'bin/hca.js',
      'README.md',
      'LICENSE',
      'schemas/hca-report-1.schema.json',
    ])
      expect(files).toContain(path);
    expect(files.filter((path) => /\bspec\b|testing|(?<!\.d)\.ts$/.test(path))).toEqual([]);
  });

  it('runs programs, stops anywhere, shows registers, memory and ledgers, and injects faults, from JavaScript', () => {
    const program = written(
      'program.js',
      'export const greet = async ({ args, node, verbs }) => ({ args, node, devices: verbs.devices.length });',
    );
    const main = written(
      'main.js',
      `import { createCq, DeadlockError, Machine, openEndpoint, renderReport } from 'hca-emulator';
      const set = { 'host.memory.sizeMib': 64 };
      const seen = [];
      {
        await using machine = await Machine.create({ set, seed: 3 });
        await machine.runTo(1e9);
        seen.push(machine.nowPs, await machine.readConfig32(0, 0));
        await machine.load({ node: 1, name: 'mark', run: async ({ memory, log, cpu }) => {
          const address = memory.map(64);
          memory.write(address, Uint8Array.of(1, 2, 3));
          log(String(address));
          await cpu.sleep(1e9);
        } });
        seen.push(await machine.runUntil(async () => (await machine.log()).some((line) => line.program === 'mark'), 1e6));
        const { text } = (await machine.log()).find((line) => line.program === 'mark');
        seen.push([...(await machine.readVirtual(1, 'mark', Number(text), 3))]);
        seen.push((await machine.run()).reason, (await machine.ledgers()).hcas.length);
        const report = await machine.report();
        seen.push(report.checks.balanced, renderReport(report).includes('The ledgers balance'));
      }
      {
        const faults = [{ command: 'SW2HW_CQ', nth: 1, status: 'BAD_RES_STATE' }];
        await using machine = await Machine.create({ set, faults });
        const make = async (program) => createCq((await openEndpoint(program)).context, 4).then(() => 'made', String);
        await machine.load({ node: 0, run: make });
        await machine.run();
        seen.push(...(await machine.results()));
      }
      {
        await using machine = await Machine.create({ set, partition: 'per-device' });
        await machine.load({ node: 0, args: 7, run: { url: ${JSON.stringify(`file://${program}`)}, exportName: 'greet' } });
        await machine.run();
        seen.push(...(await machine.results()), (await machine.runFacts()).threads);
      }
      {
        await using machine = await Machine.create({ set });
        await machine.load({ node: 0, run: ({ exchange }) => exchange.take('nothing') });
        seen.push(await machine.run().catch((error) => error instanceof DeadlockError));
      }
      console.log(JSON.stringify(seen));`,
    );
    expect(JSON.parse(run(process.execPath, [main]))).toEqual([
      ...[1e9, 0x1003_15b3, true, [1, 2, 3], 'ended', 2, true, true],
      expect.stringContaining('SW2HW_CQ ended with status BAD_RES_STATE'),
      { args: 7, node: 0, devices: 1 },
      4,
      true,
    ]);
  });

  it('has types that the strictest compiler accepts, and that reject errors', () => {
    const main = written(
      'main.ts',
      `import { type FaultPlan, getDeviceList, type JsonValue, Machine, type MachineOptions } from 'hca-emulator';
      import { openEndpoint, type ProgramContext, type Report } from 'hca-emulator';
      const faults: FaultPlan = [{ packet: 'corrupted', nth: 5 }];
      const options: MachineOptions = { set: { 'host.memory.sizeMib': 64 }, faults };
      async function count(program: ProgramContext): Promise<JsonValue> {
        await openEndpoint(program);
        return getDeviceList(program.verbs).length;
      }
      await using machine = await Machine.create(options);
      const number = await machine.load({ node: 0, run: count });
      const reason: 'ended' | 'limit' = (await machine.run()).reason;
      const report: Report = await machine.report();
      // @ts-expect-error: a program may have returned nothing
      const result: JsonValue = (await machine.results())[number];
      // @ts-expect-error: no such partition
      const wrong: MachineOptions = { partition: 'both' };
      console.log(reason, result, report.nodes.length, wrong.partition);`,
    );
    const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
    const target = [
      '--target',
      'esnext',
      '--module',
      'nodenext',
      '--types',
      'node',
      '--skipLibCheck',
      'false',
    ];
    run(process.execPath, [
      join(repository, 'node_modules', 'typescript', 'bin', 'tsc'),
      ...[...strict, '--verbatimModuleSyntax', ...target, main],
    ]);
    expect(run(process.execPath, [join(folder, 'main.js')])).toBe('ended 1 2 both\n');
  });

  it('has types that compile with the strictest compiler without those of the DOM and of Node', () => {
    const main = written(
      'plain.ts',
      `import { Machine, type RunSignal } from 'hca-emulator';
      import { Machine as PageMachine } from 'hca-emulator/browser';
      export async function last(signal: RunSignal): Promise<bigint | number> {
        await using machine: Machine = await Machine.create({ seed: 3 });
        await machine.load({ node: 0, run: { url: 'file:///program.js' } });
        await machine.run({ limitPs: 5, signal });
        return machine.instantPs;
      }
      export const made: Promise<PageMachine> = PageMachine.create();`,
    );
    const plain = [
      '--target',
      'es2024',
      '--lib',
      'es2024',
      '--module',
      'nodenext',
      '--types',
      '',
      '--skipLibCheck',
      'false',
    ];
    const tsc = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
    expect(run(process.execPath, [tsc, '--strict', '--noEmit', ...plain, main])).toBe('');
  });

  it('has a stock Linux as a library, with types for the strictest compiler', () => {
    const main = written(
      'linux.ts',
      `import { defaultCache, GuestError, LinuxMachine, type LinuxMachineOptions } from 'hca-emulator/linux';
      const options: LinuxMachineOptions = { kernel: 'debian', cache: defaultCache(), pc: { coreMhz: 99 } };
      const wrong: LinuxMachineOptions = { ...options, hosts: 9 };
      for (const each of [options, wrong]) await LinuxMachine.start(each).catch((error) => console.log(String(error)));
      console.log(GuestError.name);`,
    );
    const options = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
    const target = [
      '--target',
      'esnext',
      '--module',
      'nodenext',
      '--types',
      'node',
      '--skipLibCheck',
      'false',
    ];
    const tsc = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
    run(process.execPath, [tsc, ...options, ...target, main]);
    expect(run(process.execPath, [join(folder, 'linux.js')]).split('\n')).toEqual([
      'ConfigurationError: coreMhz is 99, expected an integer from 100 to 10000 MHz',
      'ConfigurationError: hosts is 9, expected an integer from 1 to 8',
      ...['GuestError', ''],
    ]);
  });

  it('exports every name that its declarations and its pages mention', () => {
    const declarations = new Declarations(join(installed, 'dist', 'package'));
    const names = declarations.exportsOf('index.d.ts');
    const exported = new Set([...names.values()].map((place) => place.join(' ')));
    const list = "console.log(JSON.stringify(Object.keys(await import('hca-emulator'))))";
    const values = new Set(JSON.parse(run(process.execPath, [written('names.js', list)])) as string[]);
    // Handles of the machine's inner parts have names, so that they can be passed on; their structure is not part of the API.
    const isHandle = (name: string, text: string): boolean =>
      handles.has(name) ||
      (/^export (declare )?(abstract )?(class|function)/.test(text) && !values.has(name));
    const missing: string[] = [];
    for (const [name, place] of names) {
      if (isHandle(name, declarations.textOf(place))) continue;
      for (const type of declarations.typesIn(place))
        if (!exported.has(type.join(' '))) missing.push(`${type[1]} of ${type[0]}, in ${name}`);
    }
    expect(names.size).toBeGreaterThan(200);
    expect(missing).toEqual([]);
    const inPages = [
      'explanation/messaging.md',
      'explanation/memory.md',
      'how-to/faults.md',
      'explanation/traditional.md',
    ].flatMap((page) =>
      [
        ...readFileSync(join(installed, 'docs', page), 'utf8').matchAll(
          /`(?:open|create|connect|render)[A-Z]\w*`/g,
        ),
      ].map(([name]) => name.slice(1, -1)),
    );
    expect(inPages).toContain('openMessageChannel');
    expect(inPages.filter((name) => !names.has(name))).toEqual([]);
    for (const name of ['barrier', 'openMessageChannel', 'Analysis', 'HostSpent', 'Report'])
      expect(names.has(name), name).toBe(true);
  });

  it('compiles and runs the sample of its README', () => {
    const [, sample = ''] = /```ts\n(import [\s\S]*?)```/.exec(
      readFileSync(join(installed, 'README.md'), 'utf8'),
    )!;
    const main = written('sample.ts', sample);
    run(process.execPath, [
      join(repository, 'node_modules', 'typescript', 'bin', 'tsc'),
      ...['--strict', '--target', 'esnext', '--module', 'nodenext', main],
    ]);
    const printed = run(process.execPath, [join(folder, 'sample.js')]);
    expect(printed).toContain("text: 'mlx4_0: LID 1'");
    expect(printed).toContain('balanced: true');
    const { engines } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    expect(engines.node).toBe('>=24'); // `await using` is a syntax error in Node 22 and older
  });

  itOfAll('brings the command, with its workers and its pool', () => {
    const moved = run(process.execPath, [bin, 'move', '--traditional', 'none']);
    expect(moved.match(/equal/g)).toHaveLength(3);
    expect(moved).toContain(join(installed, 'README.md'));
    const compare = ['compare', '--sizes', '64,1K', '--paths', 'write', '--count', '2'];
    const compared = run(process.execPath, [bin, ...compare], { HCA_CORES: '2' });
    expect(compared.match(/equal/g)).toHaveLength(2);
  });

  itOfAll('keeps Node’s compile cache in the folder for caches, and runs where nothing can be kept', () => {
    const { NODE_COMPILE_CACHE: _, ...environment } = process.env;
    const devinfo = (XDG_CACHE_HOME: string): string =>
      execFileSync(process.execPath, [bin, 'devinfo'], {
        env: { ...environment, XDG_CACHE_HOME },
        encoding: 'utf8',
      });
    const printed = devinfo(join(folder, 'caches'));
    expect(printed).toContain('mlx4_0');
    const kept = join(folder, 'caches', 'hca-emulator', 'compiled');
    expect(readdirSync(kept, { recursive: true }).length).toBeGreaterThan(3);
    // The stored result is used, and is the same.
    expect(devinfo(join(folder, 'caches'))).toBe(printed);
    expect(devinfo('/dev/null')).toBe(printed);
  });
});
