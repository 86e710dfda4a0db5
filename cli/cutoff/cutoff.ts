/** `hca cutoff`: copy, registration on the fly and cached registration over sizes, and the crossings of their lines. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  crossingOf,
  doublings,
  formulaOf,
  messagingConfigOf,
  type SizeRange,
  type WaitingBy,
  type Way,
} from '../../experiments/model/index.ts';
import { type CutoffLine, type CutoffOrder, messagingOf } from '../../experiments/runs/cutoff-run.ts';
import { type TaskRunner, taskRunner } from '../../experiments/runs/task-pool.ts';
import { networkOf } from '../../experiments/workloads/index.ts';
import { costParameters } from '../../host/index.ts';
import { configuredOf, type MachineOptions } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import type { MessagingConfig } from '../../userlib/messaging/index.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import {
  addMachineOptions,
  addTopologyOption,
  integer,
  type MachineChoice,
  machineHashOf,
  machineOptionsOf,
  type TopologyChoice,
} from '../options.ts';
import { exitFailed, Screen, writeJson } from '../output.ts';
import { type Measure, type Sample, simulatedCrossing } from './cutoff-crossing.ts';
import {
  type Crossing,
  type CutoffResult,
  iwarpFormulaSentence,
  resultPage,
  resultSentences,
  resultText,
  wayNames,
  ways,
} from './cutoff-report.ts';

const sizeLeast = 1;
const sizeMost = 8 * 2 ** 20;

interface CutoffOptions extends MachineChoice, TopologyChoice, HtmlChoice {
  readonly sizes: SizeRange;
  readonly waiting: WaitingBy | 'both';
  readonly rendezvous?: MessagingConfig['rendezvousBy'];
  readonly json?: string;
}

export function addCutoffCommand(program: Command): void {
  const command = program
    .command('cutoff')
    .description('say when to copy a message and when to register its buffer, simulated and by formula')
    .option('--sizes <least..most>', 'sizes of messages in bytes', sizeRange, sizeRange('64..1M'))
    .addOption(
      new Option('--waiting <how>', 'how programs wait').choices(['poll', 'event', 'both']).default('both'),
    )
    .addOption(
      new Option('--rendezvous <verb>', "who moves registered payload (default: the profile's)").choices([
        'read',
        'write',
      ]),
    )
    .option('--json <file>', 'write the figures as JSON; - is standard output')
    .option(...htmlOption)
    .action(cutoff);
  addTopologyOption(addMachineOptions(command));
}

function sizeRange(text: string): SizeRange {
  const [least, most, ...rest] = text.split('..').map(integer(sizeLeast, sizeMost));
  if (least === undefined || most === undefined || rest.length > 0 || least >= most)
    throw new InvalidArgumentError('expected two sizes like 64..1M, the smaller one first.');
  return { least, most };
}

async function cutoff(options: CutoffOptions, command: Command): Promise<void> {
  const machine: MachineOptions = { ...machineOptionsOf(options), partition: 'single' };
  const { config } = configuredOf(machine);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const sizes = doublings(options.sizes);
  const waits: readonly WaitingBy[] = options.waiting === 'both' ? ['poll', 'event'] : [options.waiting];
  const changes = options.rendezvous === undefined ? {} : { rendezvousBy: options.rendezvous };
  const messaging = { ...config.messaging, ...changes };
  await using pool: CutoffPool = taskRunner('cutoff-run');
  const studies = waits.map((waiting) => new Study(pool, machine, config, messaging, waiting));
  const results: CutoffResult[] = [];
  // All start at once: the pool queues them.
  const all = studies.map((study) => study.run(sizes));
  for (const study of all) study.catch(() => undefined);
  for (const study of all) {
    const result = await study;
    results.push(result);
    screen.print(resultText(sizes, result));
  }
  const notes = networkOf(config) === 'iwarp' ? [iwarpFormulaSentence] : [];
  for (const note of notes) screen.print(note);
  const sentences = [...resultSentences(results), ...notes];
  const ran = { title: 'When to copy and when to register', machine, sentences };
  writePage(options, () => resultPage(headOf(command, ran), sizes, results), screen);
  const configHash = machineHashOf(machine);
  const { rendezvousBy } = messaging;
  const invocation = invocationOf(command, argumentsOf(command), machine);
  if (options.json !== undefined)
    writeJson(options.json, { schema: 'hca-cutoff/1', invocation, configHash, rendezvousBy, sizes, results });
  for (const complaint of studies.flatMap(({ complaints }) => complaints)) {
    process.stderr.write(`hca: ${complaint}\n`);
    process.exitCode = exitFailed;
  }
}

type CutoffPool = TaskRunner<CutoffOrder, CutoffLine>;

/** The three lines for one way to wait for completions. */
class Study {
  readonly complaints: string[] = [];
  readonly #pool: CutoffPool;
  readonly #machine: MachineOptions;
  readonly #config: MachineConfig;
  readonly #messaging: MessagingConfig;
  readonly #waiting: WaitingBy;

  constructor(
    pool: CutoffPool,
    machine: MachineOptions,
    config: MachineConfig,
    messaging: MessagingConfig,
    waiting: WaitingBy,
  ) {
    this.#pool = pool;
    this.#machine = machine;
    this.#config = config;
    this.#messaging = messaging;
    this.#waiting = waiting;
  }

  async run(sizes: readonly number[]): Promise<CutoffResult> {
    const range = { least: sizes[0]!, most: sizes.at(-1)! };
    const [eager, onTheFly, cached] = await Promise.all(ways.map((way) => this.#measure(way, sizes)));
    const simulatedPs = { eager: eager!, onTheFly: onTheFly!, cached: cached! };
    const formula = (way: Way): readonly number[] => sizes.map(this.#formula(way, range.most));
    const formulaPs = {
      eager: formula('eager'),
      onTheFly: formula('onTheFly'),
      cached: formula('cached'),
    };
    const pairs = [
      ['eager', 'cached'],
      ['eager', 'onTheFly'],
      ['onTheFly', 'cached'],
    ] as const;
    const crossings: Crossing[] = [];
    for (const [from, to] of pairs) {
      const samples = sizes.map((size, at) => ({
        size,
        firstPs: simulatedPs[from][at]!,
        secondPs: simulatedPs[to][at]!,
      }));
      crossings.push(await this.#crossing(from, to, samples, range));
    }
    const { cutoffBytes } = messagingConfigOf(this.#config, this.#waiting, this.#messaging);
    return { waiting: this.#waiting, simulatedPs, formulaPs, crossings, cutoffBytes };
  }

  async #crossing(from: Way, to: Way, samples: readonly Sample[], range: SizeRange): Promise<Crossing> {
    const simulatedBytes = await simulatedCrossing(this.#measure, [from, to], samples);
    const formulaBytes = crossingOf(this.#formula(from, range.most), this.#formula(to, range.most), range);
    const crossing = { from, to, simulatedBytes, formulaBytes };
    if (simulatedBytes === undefined && formulaBytes === undefined)
      return { ...crossing, note: this.#whyNever(from, to, samples, range) };
    if (simulatedBytes === range.least && formulaBytes === range.least)
      return { ...crossing, note: `${wayNames[to]} is cheaper in all of this range` };
    return crossing;
  }

  /** The copying channel uses buffers that just fit: each size has a channel, and so a machine, of its own. */
  readonly #measure: Measure = async (way, sizes) => {
    const parts = way === 'eager' ? sizes.map((size) => [size]) : [sizes];
    const lines = await Promise.all(parts.map((part) => this.#runLine(way, part)));
    return lines.flat();
  };

  async #runLine(way: Way, sizes: readonly number[]): Promise<readonly number[]> {
    const order: CutoffOrder = {
      machine: this.#machine,
      messaging: this.#messaging,
      waiting: this.#waiting,
      way,
      sizes,
    };
    const line = await this.#pool.run(order);
    if (line.wrong > 0) this.complaints.push(`${line.wrong} messages arrived with wrong bytes (${way})`);
    if (!line.isBalanced) this.complaints.push('the ledgers of a run do not balance');
    return line.latencyPs;
  }

  #formula(way: Way, mostBytes: number, config = this.#config) {
    return formulaOf(config, messagingOf(this.#messaging, way, mostBytes), this.#waiting, way);
  }

  /** Cost of one more byte for each method, and the copy speed at which both cost the same. */
  #whyNever(from: Way, to: Way, samples: readonly Sample[], range: SizeRange): string {
    const [low, high] = [samples.at(-2)!, samples.at(-1)!];
    const bytes = high.size - low.size;
    const perKib = (first: number, last: number): string => (((last - first) / bytes) * 1.024).toFixed(0);
    const slopes = `a KiB more costs ${perKib(low.secondPs, high.secondPs)} ns against ${perKib(low.firstPs, high.firstPs)} ns`;
    const now = this.#config.host.cost.copyBytesPerCycle;
    for (let rate = now - 1; rate >= costParameters.copyBytesPerCycle.min; rate--) {
      const cost = { ...this.#config.host.cost, copyBytesPerCycle: rate };
      const config = { ...this.#config, host: { ...this.#config.host, cost } };
      const formula = (way: Way) => this.#formula(way, range.most, config);
      const bytes = crossingOf(formula(from), formula(to), range);
      if (bytes !== undefined)
        return `never in this range (${slopes}); at host.cost.copyBytesPerCycle=${rate} or less instead of ${now}, from ${bytes} bytes on by formula`;
    }
    return `never in this range (${slopes}), however slowly the processor copies`;
  }
}
