/** An XRC initiator at node a, an XRC target at node b, and SRQs of the target's domain with a CQ and a protection domain each. */
import { ServiceType } from '../../../abi/qpc.ts';
import {
  type BenchOptions,
  type DataPathBench,
  type DataPathNode,
  dataPathBench,
} from './data-path-bench.ts';
import { Cq, connectedPair, type Qp, Region, type Segment, Srq, takeNumber } from './data-path-verbs.ts';

/** Linux marks targets by it; the device does not look. */
const TARGET_BIT = 0x80_0000;
export const DOMAIN = 3;
/** Protection domain of the target itself: no memory belongs to it. */
const TARGET_PD = 99;

/** One of the processes that share a target. */
export interface Process {
  readonly cq: Cq;
  readonly srq: Srq;
  readonly region: Region;
  receive(segments?: readonly Segment[]): number;
}

export interface ExtendedConnection {
  readonly bench: DataPathBench;
  readonly initiator: Qp;
  readonly target: Qp;
  readonly initiatorCq: Cq;
  /** CQ of the target, where nothing comes. */
  readonly targetCq: Cq;
  readonly processes: readonly Process[];
  readonly local: Region;
}

/** An initiator and a target of {@link DOMAIN}. */
export function extendedPair(
  from: DataPathNode,
  to: DataPathNode,
  ackTimeout?: number,
): ReturnType<typeof connectedPair<DataPathNode>> {
  const xrc = { serviceType: ServiceType.XRC, doorbellRecordAddress: 0n } as const;
  return connectedPair(from, to, {
    a: { fields: xrc },
    b: { qpn: TARGET_BIT | takeNumber(), fields: { ...xrc, xrcDomain: DOMAIN, pd: TARGET_PD } },
    ...(ackTimeout === undefined ? {} : { ackTimeout }),
    ...(from === to ? { path: { remoteLid: from.address.lid } } : {}),
  });
}

export async function extendedConnection(
  options: BenchOptions & {
    readonly processes?: number;
    readonly ackTimeout?: number;
    readonly isLoopback?: boolean;
  } = {},
): Promise<ExtendedConnection> {
  const bench = await dataPathBench(options);
  const far = options.isLoopback ? bench.a : bench.b;
  const processes = Array.from({ length: options.processes ?? 2 }, (_, index): Process => {
    const pd = 20 + index;
    const cq = new Cq(far);
    const srq = new Srq(far, 4, { pd, xrcDomain: DOMAIN, cqn: cq.cqn });
    const region = new Region(far, 16_384, { pd, pageOffset: 100 });
    region.fill(50 + index);
    const receive = (segments = [region.part()]): number => srq.post(segments);
    return { cq, srq, region, receive };
  });
  const pair = extendedPair(bench.a, far, options.ackTimeout);
  const local = new Region(bench.a, 16_384, { pageOffset: 40 });
  local.fill(1);
  await bench.run(5);
  const { a: initiator, b: target, aCq: initiatorCq, bCq: targetCq } = pair;
  return { bench, initiator, target, initiatorCq, targetCq, processes, local };
}
