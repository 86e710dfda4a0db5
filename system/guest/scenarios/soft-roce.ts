/**
 * The adapter beside Linux's own Soft-RoCE (rdma_rxe) in the same guest, by the same test, in the same run: bandwidth of
 * ib_write_bw with 64 KiB messages, and the rate of 64-byte messages.
 *
 * The two take turns, and of several turns each has its middle one, so that whatever else this computer does falls on both.
 * Figures of an emulated guest compare; they say nothing of a card (docs/guest.md).
 */
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const turns = 3;

/** Options of perftest that name a device and, for Soft-RoCE, its GID of the interface's address. */
const devices = { hca: '-d mlx4_0', softRoce: '-d rxe0 -x 1' } as const;

type DeviceName = keyof typeof devices;

/** A dummy interface leads nowhere; packets to its own address come back, in 4096-byte packets as the adapter's. */
const setUp = `modprobe -a rdma_rxe crc32_generic dummy
ip link add rxe-net type dummy && ip link set rxe-net mtu 9000 up && ip addr add 10.1.0.1/24 dev rxe-net || exit 1
rdma link add rxe0 type rxe netdev rxe-net || exit 1
until grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state; do sleep 0.1; done
until grep -q 0a01:0001 /sys/class/infiniband/rxe0/ports/1/gids/1; do sleep 0.1; done`;

interface Measurement {
  readonly megabytesPerSecond: number;
  readonly messagesPerSecond: number;
}

async function measure(
  stage: Stage,
  device: DeviceName,
  sizeBytes: number,
  count: number,
): Promise<Measurement> {
  const command = `ib_write_bw ${devices[device]} -m 4096 -s ${sizeBytes} -n ${count}`;
  const output = await stage.pair({ server: command, client: `${command} localhost` });
  const [, average, rate] =
    new RegExp(`^\\s*${sizeBytes}\\s+\\d+\\s+[\\d.]+\\s+([\\d.]+)\\s+([\\d.]+)\\s*$`, 'm').exec(output) ?? [];
  if (average === undefined) throw new ScenarioFailure(`${command}: no figures in:\n${output}`);
  return { megabytesPerSecond: Number(average), messagesPerSecond: Number(rate) * 1e6 };
}

const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Measures both in turns, and leaves figures and ratio with the stage. */
async function compare(
  stage: Stage,
  name: string,
  sizeBytes: number,
  count: number,
  of: (measured: Measurement) => number,
): Promise<string> {
  const seen = { hca: [] as number[], softRoce: [] as number[] };
  for (let turn = 0; turn < turns; turn++) {
    for (const device of ['softRoce', 'hca'] as const)
      seen[device].push(of(await measure(stage, device, sizeBytes, count)));
  }
  const hca = middle(seen.hca);
  const softRoce = middle(seen.softRoce);
  stage.figures[`${name}.hca`] = hca;
  stage.figures[`${name}.softRoce`] = softRoce;
  stage.figures[`${name}.ratio`] = hca / softRoce;
  const text = (value: number): string => Math.round(value).toLocaleString('en');
  return `adapter ${text(hca)}, Soft-RoCE ${text(softRoce)}: ${(hca / softRoce).toFixed(2)} times`;
}

const steps: readonly Step[] = [
  {
    title: 'Soft-RoCE is set up beside the adapter',
    run: (stage) => stage.check(setUp).then(() => undefined),
  },
  {
    title: 'ib_write_bw of 64 KiB, in MB/s',
    run: (stage) =>
      compare(stage, 'bandwidth64KiB', 65_536, 2000, ({ megabytesPerSecond }) => megabytesPerSecond),
  },
  {
    title: 'ib_write_bw of 64 bytes, in messages per second',
    run: (stage) => compare(stage, 'rate64B', 64, 20_000, ({ messagesPerSecond }) => messagesPerSecond),
  },
];

export const softRoce: Scenario = {
  name: 'soft-roce',
  title: 'the adapter beside Soft-RoCE in the same guest',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults: [],
  isLoaded: true,
  steps,
};
