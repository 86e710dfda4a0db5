/** Two data paths with the transport iWARP over joined byte streams, and pairs of QPs that are connected by them. */
import { iwarpContext, iwarpOffsetInQpc, type RtrKind } from '../../../../abi/index.ts';
import { defaultsOf } from '../../../../base/parameter.ts';
import {
  type BenchOptions,
  benchWith,
  type Carrier,
  type DataPathBench,
  type DataPathNode,
} from '../../testing/data-path-bench.ts';
import { type Completion, Cq, pattern, Qp, type QpOptions, Region } from '../../testing/data-path-verbs.ts';
import type { TransportParts } from '../../transport/index.ts';
import { type IwarpConfig, iwarpParameters } from '../iwarp-parameters.ts';
import { type IwarpParts, iwarpTransport, type RdmaBlocks } from '../iwarp-transport.ts';
import { FakeStreams, joinCards } from './fake-streams.ts';

interface FakeTcp {
  readonly fakeStreams: FakeStreams;
}
type Blocks = RdmaBlocks & FakeTcp;
type IwarpNode = DataPathNode<IwarpParts, Blocks>;
export type IwarpBench = DataPathBench<IwarpParts, Blocks>;
type IwarpQp = Qp<IwarpNode>;

const fakeCarrier = (iwarp: Partial<IwarpConfig>, hasExtensions: boolean): Carrier<IwarpParts, Blocks> => ({
  transportOf: () =>
    iwarpTransport<FakeTcp>({ ...defaultsOf(iwarpParameters), reorderBytes: 0, ...iwarp }, hasExtensions, {
      makeBlocks: () => ({ fakeStreams: new FakeStreams() }),
      accountsOf: () => [],
      streamsOf: ({ fakeStreams }) => fakeStreams,
      portEndsOf: () => ({
        frameSink: { frameArrived: () => undefined },
        link: { spaceFreed: () => undefined },
      }),
      wires: (_blocks, _engines, rdma) => rdma,
    }),
  connect: (port, { rdmaTransmitter }) =>
    port.connect({ receiver: { packetArrived: () => undefined }, sender: rdmaTransmitter }),
});

/** Parameters on which both ends of a pair agreed. */
export interface Agreement {
  readonly hasCrc: boolean;
  /** Markers in both directions. */
  readonly hasMarkers: boolean;
  readonly rtr: RtrKindValue;
  /** IRD and ORD of both. */
  readonly reads: number;
}
type RtrKindValue = (typeof RtrKind)[keyof typeof RtrKind];

const plain: Agreement = { hasCrc: true, hasMarkers: false, rtr: 0, reads: 4 };

export interface IwarpPair {
  readonly a: IwarpQp;
  readonly b: IwarpQp;
  readonly aCq: Cq;
  readonly bCq: Cq;
  readonly connection: number;
}

let nextConnection = 7;

/** A pair of connected QPs, of which `a` is the initiator, with CQs of their own. */
export function iwarpPair(
  bench: IwarpBench,
  agreement: Partial<Agreement> = {},
  options: { readonly a?: Partial<QpOptions>; readonly b?: Partial<QpOptions> } = {},
): IwarpPair {
  const connection = nextConnection++;
  return { ...pairOn(bench, { a: connection, b: connection }, agreement, options), connection };
}

/** Makes pairs over established connections, each with a number at either end. */
export function pairOn<Parts extends TransportParts, Blocks extends object>(
  bench: Pick<DataPathBench<Parts, Blocks>, 'a' | 'b'>,
  connections: { readonly a: number; readonly b: number },
  agreement: Partial<Agreement> = {},
  options: { readonly a?: Partial<QpOptions>; readonly b?: Partial<QpOptions> } = {},
) {
  const { hasCrc, hasMarkers, rtr, reads } = { ...plain, ...agreement };
  const aCq = options.a?.sendCq ?? new Cq(bench.a);
  const bCq = options.b?.sendCq ?? new Cq(bench.b);
  const ends = {
    a: new Qp(bench.a, { sendCq: aCq, ...options.a }),
    b: new Qp(bench.b, { sendCq: bCq, ...options.b }),
  };
  for (const [name, qp] of Object.entries(ends)) {
    const context = iwarpContext.encode({
      connection: name === 'a' ? connections.a : connections.b,
      isInitiator: name === 'a' ? 1 : 0,
      sendsMarkers: hasMarkers ? 1 : 0,
      receivesMarkers: hasMarkers ? 1 : 0,
      hasCrc: hasCrc ? 1 : 0,
      rtr,
      inboundReads: reads,
      outboundReads: reads,
    });
    const { qps } = qp.node.dataPath.parts;
    qp.node.act(() => qps.bytes.set(context, qps.offsetOf(qp.slot) + iwarpOffsetInQpc));
    qp.connect(name === 'a' ? ends.b.qpn : ends.a.qpn, 0, 0);
  }
  return { ...ends, aCq, bCq };
}

const cardOf = (node: IwarpNode) => ({
  streams: node.dataPath.blocks.fakeStreams,
  domain: node.domain,
  act: (action: () => void): void => node.act(action),
});

/** Runs for this many microseconds, in each of which bytes cross. */
export async function runJoined(bench: IwarpBench, durationUs: number): Promise<void> {
  for (let us = 0; us < durationUs; us++) {
    joinCards(cardOf(bench.a), cardOf(bench.b));
    await bench.run(1);
  }
}

/** Runs until `isDone` returns true, or the bench gives up. */
export const untilJoined = (bench: IwarpBench, isDone: () => boolean, limitUs = 3000): Promise<void> =>
  bench.until(() => {
    joinCards(cardOf(bench.a), cardOf(bench.b));
    return isDone();
  }, limitUs);

/** Collects that many completions of a CQ. */
export async function completionsOf(bench: IwarpBench, cq: Cq, count: number): Promise<Completion[]> {
  const found: Completion[] = [];
  await untilJoined(bench, () => found.push(...cq.drain()) >= count);
  return found;
}

const REGION_BYTES = 16_384;

export interface IwarpOptions extends BenchOptions {
  readonly iwarp?: Partial<IwarpConfig>;
  readonly hasExtensions?: boolean;
}

/** A pair with a region at each end. */
export async function iwarpScene(
  agreement: Partial<Agreement> = {},
  options: IwarpOptions & {
    readonly a?: Partial<QpOptions>;
    readonly b?: Partial<QpOptions>;
    readonly regionBytes?: number;
  } = {},
) {
  const bench = await benchWith(fakeCarrier(options.iwarp ?? {}, options.hasExtensions ?? false), options);
  const pair = iwarpPair(bench, agreement, options);
  const bytes = options.regionBytes ?? REGION_BYTES;
  const local = new Region(bench.a, bytes, { pageOffset: 40 });
  const remote = new Region(bench.b, bytes, { pageOffset: 3000 });
  local.write(pattern(1, bytes));
  remote.write(pattern(101, bytes));
  await runJoined(bench, 5);
  const streams = { a: bench.a.dataPath.blocks.fakeStreams, b: bench.b.dataPath.blocks.fakeStreams };
  return { bench, ...pair, local, remote, streams };
}
