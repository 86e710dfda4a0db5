/**
 * The adapter next to Linux's own Soft-RoCE (rdma_rxe) in the same guest, in the same run: the same perftest program on both in
 * turn, and the ratio of its measurements.
 *
 *     ib_write_bw ─► mlx4_0 ─► vfio-user ─► emulated HCA          rate of the HCA
 *     ib_write_bw ─► rxe0 (over a dummy Ethernet device)          ───────────────── = ratio, 1 and above: as fast
 *                                                                 rate of Soft-RoCE
 *
 * Rates are wall-clock figures of the computer that runs guest and emulator, so they are reported and never asserted. A ratio is the ratio
 * of medians over rounds in which the two alternate, because the load of a computer varies. Processor time of guest and emulator depends
 * less on the load: the difference between a long and a short run, per message. It includes the time that a processor spends polling.
 * docs/how-to/serve.md explains the figures.
 */
import { tableOf } from '../../../explain/text/table.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

interface Measurement {
  readonly name: string;
  readonly title: string;
  /** `{device}` represents the options that name the adapter. */
  readonly command: string;
  readonly messages: number;
  readonly rounds: number;
  readonly unit: 'MiB/s' | 'messages/s' | 'us';
  /** Column of perftest's result line, and the factor of its unit. */
  readonly column: number;
  readonly scale: number;
}

/** Columns: size, iterations, peak, average in MiB/s, messages in millions per second. */
const bandwidth = { unit: 'MiB/s', column: 3, scale: 1 } as const;
const messageRate = { unit: 'messages/s', column: 4, scale: 1e6 } as const;
/** Columns: size, iterations, least, most, typical. */
const latency = { unit: 'us', column: 4, scale: 1 } as const;

const measurements: readonly Measurement[] = [
  {
    name: 'bandwidth64KiB',
    title: 'ib_write_bw, 64 KiB',
    command: 'ib_write_bw {device} -m 4096 -s 65536',
    messages: 1000,
    rounds: 3,
    ...bandwidth,
  },
  {
    name: 'rate64B',
    title: 'ib_write_bw, 64 bytes',
    command: 'ib_write_bw {device} -m 4096 -s 64',
    messages: 40_000,
    rounds: 3,
    ...messageRate,
  },
  {
    name: 'readBandwidth64KiB',
    title: 'ib_read_bw, 64 KiB',
    command: 'ib_read_bw {device} -m 4096 -s 65536',
    messages: 500,
    rounds: 1,
    ...bandwidth,
  },
  {
    name: 'latency8B',
    title: 'ib_write_lat, 8 bytes',
    command: 'ib_write_lat {device} -m 4096 -s 8',
    messages: 500,
    rounds: 1,
    ...latency,
  },
];

/** Messages of a run whose processor time is the fixed cost of every run. */
const fewMessages = 5;
/** perftest gives up when a busy computer upsets its measurement of the processor's clock. */
const attempts = 4;
const clockComplaint = "Can't produce a report";

/** The GID that belongs to the interface's address. */
const softRoceSides: Sides = { server: '-d rxe0 -x 1', client: '-d rxe0 -x 1' };

/** A dummy interface leads nowhere; packets to its own address return, in packets of 4096 bytes as on the adapter. */
const setUp = `modprobe -a rdma_rxe crc32_generic dummy
ip link add rxe-net type dummy && ip link set rxe-net mtu 9000 up && ip addr add 10.1.0.1/24 dev rxe-net || exit 1
rdma link add rxe0 type rxe netdev rxe-net || exit 1
until grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state; do sleep 0.1; done
until grep -q 0a01:0001 /sys/class/infiniband/rxe0/ports/1/gids/1; do sleep 0.1; done`;

/** Options by which both sides of a test name their adapter. */
interface Sides {
  readonly server: string;
  readonly client: string;
}

/** Measurements of a run, and its processor time. */
interface Outcome {
  readonly figure: number;
  readonly emulatorMs: number;
  readonly guestMs: number;
}

async function measured(
  stage: Stage,
  { command, column, scale }: Measurement,
  sides: Sides,
  messages: number,
): Promise<Outcome> {
  const server = `${command.replace('{device}', sides.server)} -n ${messages}`;
  const client = `${command.replace('{device}', sides.client)} -n ${messages} localhost`;
  for (let attempt = 1; ; attempt++) {
    try {
      const before = stage.cpuMs();
      const output = await stage.pair({ server, client });
      const after = stage.cpuMs();
      const line = output.split('\n').findLast((text) => /^\s*\d+\s+\d+\s+[\d.]+/.test(text));
      const figure = Number(line?.trim().split(/\s+/)[column]) * scale;
      if (!Number.isFinite(figure)) throw new ScenarioFailure(`${client}: no figures in\n${output}`);
      return {
        figure,
        emulatorMs: after.emulator - before.emulator,
        guestMs: after.guests - before.guests,
      };
    } catch (error) {
      const isUpset = error instanceof ScenarioFailure && error.message.includes(clockComplaint);
      if (!isUpset || attempt === attempts) throw error;
    }
  }
}

const medianOf = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[values.length >> 1]!;

/** Speed-up of the adapter: the quotient of rates, the inverse quotient of latencies. */
const ratioOf = ({ unit }: Measurement, ours: number, theirs: number): number =>
  unit === 'us' ? theirs / ours : ours / theirs;

const stepOf = (measurement: Measurement, sides: Sides): Step => ({
  title: `${measurement.title}: on the HCA and on Soft-RoCE in turn`,
  run: (stage) => measureBoth(stage, measurement, sides),
});

async function measureBoth(stage: Stage, measurement: Measurement, sides: Sides): Promise<string> {
  const { name, unit, messages, rounds } = measurement;
  const adapters = { hca: sides, softRoce: softRoceSides };
  // The emulator's code is compiled during its first run.
  await measured(stage, measurement, sides, messages);
  const few = {
    hca: await measured(stage, measurement, adapters.hca, fewMessages),
    softRoce: await measured(stage, measurement, adapters.softRoce, fewMessages),
  };
  const outcomes = { hca: [] as Outcome[], softRoce: [] as Outcome[] };
  for (let round = 0; round < rounds; round++) {
    outcomes.hca.push(await measured(stage, measurement, adapters.hca, messages));
    outcomes.softRoce.push(await measured(stage, measurement, adapters.softRoce, messages));
  }
  for (const adapter of ['hca', 'softRoce'] as const) {
    const all = outcomes[adapter];
    const usEach = (pick: (outcome: Outcome) => number): number =>
      (1000 * Math.max(0, medianOf(all.map(pick)) - pick(few[adapter]))) / (messages - fewMessages);
    stage.figures[`${name}.${adapter}`] = medianOf(all.map(({ figure }) => figure));
    stage.figures[`${name}.${adapter}.emulatorUs`] = usEach(({ emulatorMs }) => emulatorMs);
    stage.figures[`${name}.${adapter}.guestUs`] = usEach(({ guestMs }) => guestMs);
  }
  const { [`${name}.hca`]: hca, [`${name}.softRoce`]: softRoce } = stage.figures;
  stage.figures[`${name}.ratio`] = ratioOf(measurement, hca!, softRoce!);
  const listed = (all: readonly Outcome[]): string => all.map(({ figure }) => amount(figure)).join(', ');
  return `HCA ${listed(outcomes.hca)} ${unit}; Soft-RoCE ${listed(outcomes.softRoce)} ${unit}`;
}

const amount = (value: number): string => (value < 100 ? value.toFixed(1) : Math.round(value).toString());

const sideBySide: Step = {
  title: 'side by side, and how many times as fast the HCA is',
  async run({ figures }) {
    const rows = measurements.map((measurement) => {
      const { name, title, unit } = measurement;
      const figure = (suffix: string): string => amount(figures[name + suffix]!);
      return [
        `${title} (${unit})`,
        figure('.hca'),
        figure('.softRoce'),
        figures[`${name}.ratio`]!.toFixed(2),
        `${figure('.hca.emulatorUs')} + ${figure('.hca.guestUs')}`,
        figure('.softRoce.guestUs'),
      ];
    });
    return tableOf(
      'medians, and processor time of each message in us: emulator + guest',
      ['test', 'HCA', 'Soft-RoCE', 'ratio', 'HCA, us', 'Soft-RoCE, us'],
      rows,
    );
  },
};

/** One round of a tenth of the messages. */
const inBrief = (measurement: Measurement): Measurement => ({
  ...measurement,
  messages: measurement.messages / 10,
  rounds: 1,
});

const stepsOf = (sides: Sides, taken: readonly Measurement[]): Step[] => [
  {
    title: 'Soft-RoCE stands beside the adapter',
    async run(stage) {
      await stage.check(setUp);
      return undefined;
    },
  },
  ...taken.map((measurement) => stepOf(measurement, sides)),
  sideBySide,
];

/** Measurements of the adapter's two sides in a scenario. */
const stepsBetween = (sides: Sides) => ({
  steps: stepsOf(sides, measurements),
  briefSteps: stepsOf(sides, measurements.map(inBrief)),
});

export const softRoce: Scenario = {
  name: 'soft-roce',
  title: "speed beside Linux's Soft-RoCE, one HCA in loopback",
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults: [],
  needsQemu: 'kernels of 32 bits have no Soft-RoCE',
  isLoaded: true,
  ...stepsBetween({ server: '-d mlx4_0', client: '-d mlx4_0' }),
};

export const softRoceCable: Scenario = {
  name: 'soft-roce-cable',
  title: "speed beside Linux's Soft-RoCE, two HCAs on a cable",
  hcas: 2,
  isCabled: true,
  guests: 1,
  faults: [],
  isLoaded: true,
  ...stepsBetween({ server: '-d mlx4_0', client: '-d mlx4_1' }),
};
