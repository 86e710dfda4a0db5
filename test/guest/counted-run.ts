/**
 * Counts that programs cause at the HCA of a guest, in QEMU or in this process: the same steps, the same counters, and
 * the commands of the driver in their order, out of the trace of the bus analyser.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  finishScenario,
  type Scenario,
  type Stage,
  scenarioNamed,
  startInside,
  startScenario,
} from '../../guests/linux/index.ts';
import { makeTemporaryFolder } from '../../guests/linux/temporary-folder.ts';
import type { DevicesReport, ServedNodeReport } from '../../guests/serve/index.ts';
import { slowPc } from './inside-suite.ts';
import { cache, optionsFor } from './suite.ts';

export type GuestKind = 'qemu' | 'inside';

/** A command of the driver, from the trace. */
export interface TracedCommand {
  readonly name: string;
  /** Instant at which it was posted, in picoseconds. */
  readonly atPs: number;
  /** Name, modifiers, token and status. */
  readonly summary: string;
  /** Fields of its mailboxes by title and name; a field that is 0 is left out. */
  readonly fields: Readonly<Record<string, number | string>>;
}

type Counts = Readonly<Record<string, number>>;

/** Differences of the counters that a program caused, 0 left out, and its commands. */
export interface ProgramCounts {
  readonly counts: Counts;
  readonly commands: readonly TracedCommand[];
}

export interface CountedRun {
  /** Loading of the drivers, under `load`, and each program under its command line. */
  readonly programs: ReadonlyMap<string, ProgramCounts>;
  /** Since power-on, after all programs. */
  readonly total: Counts;
  /** Interrupts of the driver's vectors, as the device and as the guest counts them. */
  readonly interrupts: readonly { readonly deviceCount: number; readonly guestCount: number }[];
}

/** One guest with one HCA that talks to itself; the drivers are loaded as a step of its own. */
const scenario: Scenario = { ...scenarioNamed('loopback'), isLoaded: false };

const traceBytes = 64 * 1024 ** 2;

/** The guest has one processor, as the PC of this process has: mlx4_core makes an event queue for each. */
const start = (kind: GuestKind, file: string): Promise<Stage> => {
  const trace = {
    categories: ['commands'],
    filters: [],
    format: 'json',
    file,
    sizeBytes: traceBytes,
  } as const;
  const analysis = { trace };
  return kind === 'qemu'
    ? startScenario(scenario, { ...optionsFor('debian', 1), serve: { analysis } })
    : startInside(scenario, { kernel: 'debian', cache, pc: slowPc, analysis });
};

/** Loads the drivers, runs the programs one after another, and counts what each of them causes. @throws GuestError */
export async function countedRun(kind: GuestKind, programs: readonly string[]): Promise<CountedRun> {
  const { path, remove } = makeTemporaryFolder('hca-counts-');
  try {
    const stage = await start(kind, join(path, 'trace.log'));
    await using session = stage.session;
    const ends = [await endOf('boot', session.machine.report())];
    await session.load();
    ends.push(await endOf('load', session.machine.report()));
    for (const program of programs) {
      await stage.check(program);
      ends.push(await endOf(program, session.machine.report()));
    }
    const { report, interrupts } = await finishScenario(stage);
    const commands = commandsIn(readFileSync(join(path, `trace.guest0.log`), 'utf8'));
    return { programs: programsOf(ends, commands), total: countsOf(report.nodes[0]!), interrupts };
  } finally {
    remove();
  }
}

/** Counters at the end of a program. */
interface ProgramEnd {
  readonly program: string;
  readonly elapsedPs: number;
  readonly counts: Counts;
}

async function endOf(program: string, report: Promise<DevicesReport>): Promise<ProgramEnd> {
  const { elapsedPs, nodes } = await report;
  return { program, elapsedPs, counts: countsOf(nodes[0]!) };
}

function programsOf(
  ends: readonly ProgramEnd[],
  commands: readonly TracedCommand[],
): ReadonlyMap<string, ProgramCounts> {
  return new Map(
    ends.slice(1).map(({ program, elapsedPs, counts }, index) => {
      const before = ends[index]!;
      const differences = Object.entries(counts)
        .map(([name, count]) => [name, count - (before.counts[name] ?? 0)] as const)
        .filter(([, count]) => count !== 0);
      const own = commands.filter(({ atPs }) => atPs >= before.elapsedPs && atPs < elapsedPs);
      return [program, { counts: Object.fromEntries(differences), commands: own }];
    }),
  );
}

/** Counters of a device: commands, TLPs by class, accesses of its registers, doorbells, packets, and interrupts. */
function countsOf({ hca, pcie, accesses, interrupts }: ServedNodeReport): Counts {
  const { registers, doorbells, combinedLines, partLines } = accesses;
  return Object.fromEntries([
    ...Object.entries(hca.commands).map(([name, { count }]) => [`command.${name}`, count]),
    ...Object.entries(pcie.toHost.classes).map(([name, { tlps }]) => [`toHost.${name}`, tlps]),
    ...Object.entries(pcie.toDevice.classes).map(([name, { tlps }]) => [`toDevice.${name}`, tlps]),
    ...Object.entries(hca.doorbells).map(([name, count]) => [`doorbell.${name}`, count]),
    ...Object.entries({ ...registers, ...doorbells }).flatMap(([name, { reads, writes }]) => [
      [`loads.${name}`, reads],
      [`stores.${name}`, writes],
    ]),
    ['blueFlameLines', combinedLines + partLines],
    ...Object.entries(hca.loopback?.transmitted ?? {}).map(([opcode, { packets }]) => [
      `packets.${opcode}`,
      packets,
    ]),
    ['interrupts', interrupts.reduce((sum, { raised }) => sum + raised, 0)],
  ]) as Counts;
}

interface TraceLine {
  readonly atPs: number;
  readonly command: string;
  readonly summary: string;
  readonly sections: readonly { readonly title: string; readonly fields: TracedCommand['fields'] }[];
}

const commandsIn = (text: string): TracedCommand[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { atPs, command, summary, sections } = JSON.parse(line) as TraceLine;
      const fields = sections.flatMap((section) =>
        Object.entries(section.fields).map(([name, value]) => [`${section.title}.${name}`, value]),
      );
      return {
        ...{ name: command, atPs, fields: Object.fromEntries(fields) as TracedCommand['fields'] },
        // The time that it took follows its status.
        summary: summary.replace(/, [\d.]+ ns$/, ''),
      };
    });
