/** Two data paths with the transport iWARP over the card's own TCP, and a cable of Ethernet between them. */
import { TcpEvent, tcpContext } from '../../../../abi/index.ts';
import { macBytesOf } from '../../../../base/index.ts';
import { defaultsOf } from '../../../../base/parameter.ts';
import type { ContextMemory } from '../../memory/index.ts';
import {
  type BenchOptions,
  benchWith,
  type Carrier,
  type DataPathBench,
} from '../../testing/data-path-bench.ts';
import { pattern, Region } from '../../testing/data-path-verbs.ts';
import { type IwarpConfig, iwarpParameters } from '../iwarp-parameters.ts';
import { type IwarpParts, iwarpTransport, type RdmaBlocks } from '../iwarp-transport.ts';
import { makeTcpBlocks, type TcpBlocks, tcpAccountsOf, tcpWires } from '../tcp/tcp-blocks.ts';
import type { TcpReport } from '../tcp/tcp-events.ts';
import { type Agreement, pairOn } from './iwarp-bench.ts';

/** Below everything that the bench allocates. */
const CONTEXT_BASE = 0x60_0000;
export const CONNECTIONS_MAX = 16;
export const PORT = 4791;

const contextMemory: ContextMemory = {
  mappedPageCount: 0,
  keyCount: 0,
  contextAddress: (_kind, number) => CONTEXT_BASE + number * tcpContext.sizeBytes,
  keyAddress: () => -1,
  translationAddress: () => -1,
};

/** Notes `ESTABLISHED 5`, `TERMINATE_SENT 5 0x1100`, in order. */
class TcpLog {
  readonly lines: string[] = [];

  canPost(): boolean {
    return true;
  }

  postTcpEvent({ event, connection, terminate }: TcpReport): void {
    const name = Object.entries(TcpEvent).find(([, value]) => value === event)![0];
    const error = name.startsWith('TERMINATE') ? ` 0x${terminate.toString(16).padStart(4, '0')}` : '';
    this.lines.push(`${name} ${connection}${error}`);
  }

  /** Number of the connection of an event, once there is one. */
  numberOf(event: string): number | undefined {
    const line = this.lines.find((one) => one.startsWith(`${event} `));
    return line === undefined ? undefined : Number(line.split(' ')[1]);
  }
}

type Blocks = RdmaBlocks & TcpBlocks & { readonly tcpLog: TcpLog };
type CardBench = DataPathBench<IwarpParts, Blocks>;

function cardCarrier(iwarp: IwarpConfig): Carrier<IwarpParts, Blocks> {
  return {
    isForFrames: true,
    transportOf: ({ addresses }) => {
      const eventQueues = new TcpLog();
      return iwarpTransport<TcpBlocks & { readonly tcpLog: TcpLog }>(iwarp, false, {
        makeBlocks: (parts) => ({
          ...makeTcpBlocks({
            ...parts,
            iwarp,
            ethernet: parts.ethernet!,
            address: addresses[0]!,
            contextMemory,
            sram: { bytes: parts.sram, allocate: parts.allocateSram },
            connectionsMax: CONNECTIONS_MAX,
          }),
          tcpLog: eventQueues,
        }),
        streamsOf: ({ tcpStreams }) => tcpStreams,
        accountsOf: tcpAccountsOf,
        portEndsOf: ({ tcpEngine, tcpTransmitter }) => ({ frameSink: tcpEngine, link: tcpTransmitter }),
        wires: (blocks, { frameTransmitter, frameReceiver }, rdma) => ({
          ...rdma,
          ...tcpWires(blocks, { eventQueues, frameTransmitter, frameReceiver }),
        }),
      });
    },
    connect: (port, { rdmaTransmitter }) =>
      port.connect({ receiver: { packetArrived: () => undefined }, sender: rdmaTransmitter }),
  };
}

/** Addresses of the two cards. */
export const macs = { a: 0x0002_c912_3401, b: 0x0002_c912_3402 } as const;
const addressOf = (node: number): Uint8Array =>
  Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, node);

const standing = {
  ...{ port: 1, hopLimit: 64, maxSegmentBytes: 1460, receiveWindowBytes: 256 * 1024, receiveScale: 3 },
  ...{ synRetries: 6, dataRetries: 15, backlog: 4 },
};

/**
 * Opens a connection between both cards, or from card a to itself, as a driver does.
 * @returns its number at each end; `a` is the initiator's
 */
async function connectCards(bench: CardBench, isLooped: boolean): Promise<{ a: number; b: number }> {
  const { a } = bench;
  const b = isLooped ? a : bench.b;
  const remoteMac = macBytesOf(isLooped ? macs.a : macs.b);
  const remoteAddress = addressOf(isLooped ? 1 : 2);
  const listening = tcpContext.encode({ ...standing, localAddress: remoteAddress, localPort: PORT });
  const opening = tcpContext.encode({
    ...standing,
    ...{ localAddress: addressOf(1), remoteAddress, remoteMac, localPort: 5000, remotePort: PORT },
  });
  for (const node of [a, b]) node.act(() => node.dataPath.blocks.tcpControl.place(CONNECTIONS_MAX));
  b.act(() => b.dataPath.blocks.tcpControl.listen(tcpContext.decode(listening), listening));
  await bench.run(2);
  a.act(() => a.dataPath.blocks.tcpControl.open(tcpContext.decode(opening), opening));
  const numbers = () => ({
    a: a.dataPath.blocks.tcpLog.numberOf('ESTABLISHED'),
    b: b.dataPath.blocks.tcpLog.numberOf('ACCEPTED'),
  });
  await bench.until(() => numbers().a !== undefined && numbers().b !== undefined, 500);
  return { a: numbers().a!, b: numbers().b! };
}

/** A pair over the card's TCP, with a region at each end. */
export async function cardScene(
  agreement: Partial<Agreement> = {},
  options: BenchOptions & {
    readonly iwarp?: Partial<IwarpConfig>;
    readonly regionBytes?: number;
    /** Both ends are at node a. */
    readonly isLooped?: boolean;
  } = {},
) {
  const iwarp = { ...defaultsOf(iwarpParameters), ...options.iwarp };
  const { isLooped = false } = options;
  const bench = await benchWith(cardCarrier(iwarp), { ethernet: {}, macs, ...options });
  const numbers = await connectCards(bench, isLooped);
  const nodes = { a: bench.a, b: isLooped ? bench.a : bench.b };
  const pair = pairOn(nodes, numbers, agreement);
  const bytes = options.regionBytes ?? 16_384;
  const local = new Region(bench.a, bytes, { pageOffset: 40 });
  const remote = new Region(nodes.b, bytes, { pageOffset: 3000 });
  local.write(pattern(1, bytes));
  remote.write(pattern(101, bytes));
  await bench.run(5);
  const logs = { a: nodes.a.dataPath.blocks.tcpLog.lines, b: nodes.b.dataPath.blocks.tcpLog.lines };
  return { bench, ...pair, numbers, local, remote, logs };
}
