/** The scene most specs of the data path play in: a connected pair with a region each, and a second pair that must not notice. */
import { expect } from 'vitest';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { type BenchOptions, type DataPathBench, dataPathBench } from './data-path-bench.ts';
import {
  type Completion,
  type Cq,
  connectedPair,
  pattern,
  type Qp,
  type QpOptions,
  Region,
} from './data-path-verbs.ts';

const REGION_BYTES = 16_384;

export interface Scene {
  readonly bench: DataPathBench;
  readonly a: Qp;
  readonly b: Qp;
  readonly aCq: Cq;
  readonly bCq: Cq;
  /** Regions with all rights: `local` at a, `remote` at b. */
  readonly local: Region;
  readonly remote: Region;
  /** Target of a's requests. */
  readonly target: { readonly address: number; readonly key: number };
  /** Checks that another pair of QPs on the same devices still works. */
  checkBystanders(): Promise<void>;
}

export interface SceneOptions extends BenchOptions {
  readonly a?: Partial<QpOptions>;
  readonly b?: Partial<QpOptions>;
  readonly ackTimeout?: number;
}

export async function scene(options: SceneOptions = {}): Promise<Scene> {
  const bench = await dataPathBench(options);
  const pair = connectedPair(bench.a, bench.b, options);
  const others = connectedPair(bench.a, bench.b);
  const local = new Region(bench.a, REGION_BYTES, { pageOffset: 40 });
  const remote = new Region(bench.b, REGION_BYTES, { pageOffset: 3000 });
  local.fill(1);
  remote.fill(101);
  await bench.run(5);
  const checkBystanders = async (): Promise<void> => {
    const from = new Region(bench.a, 3000);
    const to = new Region(bench.b, 3000);
    from.write(pattern(9, 3000));
    others.a.send({
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [from.part()],
      remote: { address: to.address, key: to.key },
    });
    const completions: Completion[] = [];
    await bench.until(() => completions.push(...others.aCq.drain()) > 0, 200);
    expect([others.a.state, others.b.state]).toEqual([QpState.RTS, QpState.RTS]);
    expect(syndromesOf(completions)).toEqual([0]);
    expect(to.read()).toEqual(from.read());
  };
  const target = { address: remote.address, key: remote.key };
  return { bench, ...pair, local, remote, target, checkBystanders };
}

export const syndromesOf = (completions: readonly Completion[]): number[] =>
  completions.map(({ syndrome }) => syndrome);

/** `counter:syndrome` of each completion, in order. */
export const summaryOf = (completions: readonly Completion[]): string[] =>
  completions.map(
    ({ isSend, wqeCounter, syndrome }) =>
      `${isSend ? 'send' : 'receive'} ${wqeCounter}: 0x${syndrome.toString(16)}`,
  );

/** Opcode and PSN of each packet, in order. */
export const packetsTo = (qp: Qp): { opcode: number; psn: number }[] =>
  qp.node.port.packets.filter(({ qpn }) => qpn === qp.qpn).map(({ opcode, psn }) => ({ opcode, psn }));
