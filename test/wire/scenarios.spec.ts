/**
 * Two simulated hosts repeat the actions of two stock Linux machines in the captures of `reference/wire`, on a cable that
 * treats packets like the relay between those. Their packets are compared with the captures, one by one at each end: opcode,
 * PSN, flags, pad, extension headers and payload. Addresses, keys and QP numbers are their own. Deviations of Linux' Soft-RoCE
 * from the standard are listed.
 */
import { describe, expect, it, vi } from 'vitest';
import { AethKind, NakCode, Opcode, opcodeRow, syndromeKind, syndromeValue } from '../../wire/index.ts';
import { programsOf, smallMachine } from '../machines.ts';
import type { LinuxScenario } from '../programs/linux-scenario.ts';
import {
  capturedPackets,
  faultsOf,
  linuxMachines,
  packetsOf,
  type SentPacket,
  scenarioNames,
  scenarioOf,
  stepOf,
} from './linux-scenarios.ts';

vi.setConfig({ testTimeout: 60_000 });

async function played(name: string): Promise<{ sent: SentPacket[]; told: Outcome['told'] }> {
  return play(scenarioOf(name), faultsOf(capturedPackets(name)));
}

async function play(
  scenario: LinuxScenario,
  faults: ReturnType<typeof faultsOf>,
): Promise<{ sent: SentPacket[]; told: Outcome['told'] }> {
  const ends = [0, 1].map((node) => ({ node, direction: 'outbound' as const }));
  await using machine = await smallMachine({
    ...{ set: linuxMachines, faults },
    analysis: { capture: { ends, sizeBytes: 2 ** 24 } },
  });
  const args = scenario;
  for (const program of programsOf('linux-scenario', 'linux', args)) await machine.load(program);
  await machine.run();
  return {
    sent: packetsOf((await machine.capture())!, (_, at) => at),
    told: await machine.results<Outcome['told']>(),
  };
}

/** Contents of a packet, without values specific to its machines. */
interface Said {
  readonly opcode: string;
  readonly psn: number;
  readonly bits: readonly number[];
  readonly path: readonly number[];
  readonly headers: Readonly<Record<string, unknown>>;
  readonly payload: string;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** An ACK's credits depend on the receiver; the value of a NAK or RNR NAK is its meaning. */
function aethOf({ syndrome, messageSequenceNumber }: { syndrome: number; messageSequenceNumber: number }) {
  const kind = syndromeKind(syndrome);
  return kind === AethKind.ACK
    ? { kind, messageSequenceNumber }
    : { kind, value: syndromeValue(syndrome), messageSequenceNumber };
}

/** Addresses as distances from the first of their direction, keys as the bits that differ from its first. */
function saidBy(packets: readonly SentPacket[]): Said[] {
  let [address, key]: [bigint | undefined, number | undefined] = [undefined, undefined];
  return packets.map(({ packet }) => {
    const { bth, headers, payload, ipv4, ipv6 } = packet;
    const { RETH: reth, AtomicETH: atomic, AETH: aeth, IETH: ieth, DETH: deth, ...others } = headers;
    const target = reth ?? atomic;
    if (target !== undefined) {
      address ??= target.virtualAddress;
      key ??= target.rKey;
    }
    return {
      opcode: opcodeRow(bth.opcode)!.name,
      psn: bth.psn,
      bits: [bth.ackRequest, bth.solicitedEvent, bth.padCount, bth.partitionKey],
      path:
        ipv4 === undefined
          ? [ipv6!.hopLimit, ipv6!.differentiatedServices, ipv6!.ecn, ipv6!.flowLabel]
          : [ipv4.timeToLive, ipv4.differentiatedServices, ipv4.ecn],
      headers: {
        ...others,
        ...(target && { address: target.virtualAddress - address!, key: target.rKey ^ key! }),
        ...(reth && { dmaLength: reth.dmaLength }),
        ...(atomic && {
          swapOrAdd: atomic.swapOrAdd,
          ...(packet.bth.opcode === Opcode.RC_COMPARE_SWAP && { compare: atomic.compare }),
        }),
        ...(aeth && { aeth: aethOf(aeth) }),
        ...(ieth && { invalidates: true }),
        ...(deth && { queueKey: deth.queueKey }),
      },
      payload: hex(payload),
    };
  });
}

/** Packets that left an end, without copies made by the cable. */
const leavingAt = (node: number, packets: readonly SentPacket[]): SentPacket[] =>
  packets.filter((sent) => sent.node === node && !/duplicate|a copy/.test(sent.comment));

interface Outcome {
  /** Statuses of each step, at each end. */
  readonly told: readonly (readonly string[][])[];
  /** Messages by end. */
  readonly ours: readonly Said[][];
  readonly linux: readonly Said[][];
}

async function bothOf(name: string): Promise<Outcome> {
  const { sent, told } = await played(name);
  const saidOf = (packets: readonly SentPacket[]): Said[][] =>
    [0, 1].map((node) => saidBy(leavingAt(node, packets)));
  return { told, ours: saidOf(sent), linux: saidOf(capturedPackets(name)) };
}

/** READs repeated from their middle: Soft-RoCE answers with MIDDLE (RESP_RESUME_OP of the page); the standard has FIRST, with an AETH. */
const repeatedReads = ['drop-read-response-middle-ipv4.pcapng', 'reorder-read-response-ipv4.pcapng'];
/** Their results depended on how soon a requester went back, and on the packets sent until then. */
const reordered = ['reorder-read-response-ipv4.pcapng', 'reorder-write-ipv4.pcapng'];
const inTheirOwnWay = [
  ...new Set([...repeatedReads, ...reordered]),
  'corrupt-icrc-write-ipv4.pcapng',
  'dup-send-ipv4.pcapng',
  'nak-invalid-recv-short-ipv4.pcap',
  'rc-mixed-batch-ipv4.pcap',
  'rc-tclass-flowlabel-ipv6.pcap',
  'rnr-retry-ipv4.pcap',
  'rnr-retry-multi-ipv4.pcap',
  'ud-ipv4.pcap',
  'ud-ipv6.pcap',
];

const distinct = (said: readonly Said[]): Said[] => [
  ...new Map(said.map((one) => [JSON.stringify(one, bigintsAsText), one])).values(),
];
const bigintsAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value;
const isNakOf =
  (code: number) =>
  (said: Said): boolean => {
    const { aeth } = said.headers as { aeth?: ReturnType<typeof aethOf> };
    return aeth?.kind === AethKind.NAK && 'value' in aeth && aeth.value === code;
  };

/** Stock tools: the path MTU and their actions, as on their command line; the answers of a request are not awaited. */
const many = (count: number, work: string): string => Array(count).fill(work).join('+');
const tools: Readonly<
  Record<string, { readonly mtu: LinuxScenario['mtu']; readonly steps: readonly string[] }>
> = {
  'perftest-atomic-bw-ipv6.pcap': { mtu: 5, steps: [many(20, 'fadd:1')] },
  'perftest-send-bw-2qp-ipv6.pcap': { mtu: 2, steps: [many(8, 'send:3000')] },
  'perftest-write-bw-mtu1024-ipv4.pcap': { mtu: 3, steps: [many(5, 'write:30000')] },
  'perftest-write-bw-mtu4096-ipv4.pcap': { mtu: 5, steps: [many(5, 'write:32768')] },
  'pingpong-rc-ipv4.pcap': { mtu: 3, steps: Array(6).fill(['send:2500', '<send:2500']).flat() as string[] },
};

const isRequest = ({ packet }: SentPacket): boolean => opcodeRow(packet.bth.opcode)!.isRequest;

/** The packets of each connection of a capture. A QP is identified by its number and its end; a peer by the PSNs that it acknowledges. */
function connectionsOf(packets: readonly SentPacket[]): SentPacket[][] {
  const flows = Object.values(
    Object.groupBy(packets, ({ node, packet }) => `${node} ${packet.bth.destinationQp}`),
  ).map((flow) => flow!);
  return flows
    .filter(([first]) => first!.node === 0)
    .map((flow) => {
      const psns = new Set(flow.filter(isRequest).map(({ packet }) => packet.bth.psn));
      const back = flows.filter(
        (other) =>
          other[0]!.node === 1 && other.some((sent) => !isRequest(sent) && psns.has(sent.packet.bth.psn)),
      );
      expect(back).toHaveLength(1);
      return [...flow, ...back[0]!];
    });
}

/** First PSNs and the hop limit are chosen by the tool: those of the capture. */
function scenarioOfTool(name: string, connection: readonly SentPacket[]): LinuxScenario {
  const { mtu, steps } = tools[name]!;
  const psns = [0, 1].map(
    (node) => connection.find((sent) => sent.node === node && isRequest(sent))?.packet.bth.psn ?? 0,
  );
  const { ipv4, ipv6 } = connection[0]!.packet;
  return {
    ...scenarioOf(scenarioNames[0]!),
    ...{ mtu, steps: steps.map(stepOf), psns: [psns[0]!, psns[1]!] },
    ...{ sgidIndex: ipv4 === undefined ? 1 : 3, hopLimit: ipv4?.timeToLive ?? ipv6!.hopLimit },
    ...{ readsMax: 16, timeoutCode: 18, retryCount: 7, rnrRetryCount: 7 },
  };
}

/** Requests and answers separately, because a tool's pace mixes them; the bytes sent or read, and their addresses, are the tool's own. */
function byKind(packets: readonly SentPacket[]): unknown[][] {
  const said = saidBy(packets).map(({ payload, headers: all, ...one }) => {
    const { address: _at, AtomicAckETH: _was, ...headers } = all;
    return { ...one, headers, payloadBytes: payload.length / 2 };
  });
  return [true, false].map((kind) => said.filter((_, at) => isRequest(packets[at]!) === kind));
}

describe('two hosts that do what two Linux machines did', () => {
  it.each(Object.keys(tools))(
    'send what stock tools had them send, connection by connection: %s',
    async (name) => {
      const connections = connectionsOf(capturedPackets(name));
      expect(connections).toHaveLength(name.includes('2qp') ? 2 : 1);
      for (const connection of connections) {
        const { sent } = await play(scenarioOfTool(name, connection), []);
        for (const node of [0, 1])
          expect(byKind(leavingAt(node, sent))).toEqual(byKind(leavingAt(node, connection)));
      }
    },
  );

  it.each(scenarioNames.filter((name) => !inTheirOwnWay.includes(name)))(
    'send the same packets in the same order: %s',
    async (name) => {
      const { ours, linux } = await bothOf(name);
      expect(linux.flat().length).toBeGreaterThan(0);
      expect(ours).toEqual(linux);
    },
  );

  it('cover all captures of wt', () => {
    expect(scenarioNames).toHaveLength(47);
    expect(inTheirOwnWay.filter((name) => !scenarioNames.includes(name))).toEqual([]);
  });

  it('IBTA 9.7.5.1.4: answer a READ that is repeated from its middle with FIRST, where Soft-RoCE continues with MIDDLE', async () => {
    const { ours, linux, told } = await bothOf(repeatedReads[0]!);
    expect(ours[0]).toEqual(linux[0]);
    const standards = linux[1]!.map((said, at) => {
      const isResumed = said.psn === 258 && at > 5;
      if (!isResumed) return said;
      const aeth = { kind: AethKind.ACK, messageSequenceNumber: 1 };
      return { ...said, opcode: 'RC_RDMA_READ_RESPONSE_FIRST', headers: { aeth } };
    });
    expect(ours[1]).toEqual(standards);
    expect(told).toEqual([[['SUCCESS']], [[]]]);
  });

  it.each(reordered)('do so until they go back: %s', async (name) => {
    const { ours, linux, told } = await bothOf(name);
    // Six packets of 6000 bytes, for any reordering, and a NAK for each gap.
    const byPsn = (said: readonly Said[], count: number): Said[] =>
      said.slice(0, count).toSorted((left, right) => left.psn - right.psn);
    const [requests, answers] = name.includes('read') ? [1, 6] : [6, 3];
    expect(byPsn(ours[0]!, requests)).toEqual(byPsn(linux[0]!, requests));
    expect(byPsn(ours[1]!, answers)).toEqual(byPsn(linux[1]!, answers));
    expect(told).toEqual([[['SUCCESS']], [[]]]);
  });

  it('do so if a packet was damaged, except for the bytes of the damaged one', async () => {
    const { ours, linux } = await bothOf('corrupt-icrc-write-ipv4.pcapng');
    const damaged = 1;
    expect(ours[0]![damaged]!.payload).not.toBe(linux[0]![damaged]!.payload);
    expect(ours[0]!.with(damaged, linux[0]![damaged]!)).toEqual(linux[0]);
    expect(ours[1]).toEqual(linux[1]);
  });

  it('IBTA 9.7.5.1.4: acknowledge a duplicated packet again, as far as they have received until then', async () => {
    const { ours, linux } = await bothOf('dup-send-ipv4.pcapng');
    expect(ours[0]).toEqual(linux[0]);
    const psns = (said: readonly Said[]): number[] => said.map(({ psn }) => psn);
    // The copy of 257 follows the message's last packet here, and precedes it there.
    expect([psns(ours[1]!), psns(linux[1]!)]).toEqual([
      [258, 258, 259],
      [257, 258, 259],
    ]);
  });

  it('IBTA 9.9.3: answer a SEND that is too long for its receive with NAK "invalid request", where Soft-RoCE has "remote operational error"', async () => {
    const { ours, linux, told } = await bothOf('nak-invalid-recv-short-ipv4.pcap');
    expect(ours[0]).toEqual(linux[0]);
    expect(linux[1]!.filter(isNakOf(NakCode.REMOTE_OPERATIONAL_ERROR))).toHaveLength(1);
    expect(ours[1]!.filter(isNakOf(NakCode.INVALID_REQUEST))).toHaveLength(1);
    expect(ours[1]!.map(({ psn }) => psn)).toEqual(linux[1]!.map(({ psn }) => psn));
    expect(told).toEqual([[['REM_INV_REQ_ERR']], [['LOC_LEN_ERR']]]);
  });

  it('IBTA 9.7.5.1: answer many simultaneous requests in order, several with one ACK', async () => {
    const { ours, linux } = await bothOf('rc-mixed-batch-ipv4.pcap');
    expect(ours[0]).toEqual(linux[0]);
    const answers = (said: readonly Said[]): string[] => said.map(({ opcode, psn }) => `${opcode} ${psn}`);
    const own = answers(ours[1]!);
    expect(answers(linux[1]!).filter((answer) => own.includes(answer))).toEqual(own);
    expect(own.at(-1)).toBe('RC_ACKNOWLEDGE 270');
    expect(own).toHaveLength(9);
  });

  it('do so with the requested flow label, where Soft-RoCE sends 0', async () => {
    const { ours, linux } = await bothOf('rc-tclass-flowlabel-ipv6.pcap');
    const labelled = linux.map((said) => said.map((one) => ({ ...one, path: one.path.with(-1, 0xabcde) })));
    expect(ours).toEqual(labelled);
    // 0x68 as requested: 26 of DSCP, and not ECN-capable.
    expect(ours[0]![0]!.path).toEqual([64, 26, 0, 0xabcde]);
  });

  it.each(['rnr-retry-ipv4.pcap', 'rnr-retry-multi-ipv4.pcap'])(
    'IBTA 9.7.5.2.8: do so as often as the time of the RNR NAK demands, and send no other NAK meanwhile: %s',
    async (name) => {
      const { ours, linux } = await bothOf(name);
      expect(distinct(ours[0]!)).toEqual(distinct(linux[0]!));
      // Soft-RoCE answers requests after one that it has deferred with a NAK of its own.
      const answers = linux[1]!.filter((said) => !isNakOf(NakCode.PSN_SEQUENCE_ERROR)(said));
      expect(distinct(ours[1]!)).toEqual(distinct(answers));
    },
  );

  it.each(['ud-ipv4.pcap', 'ud-ipv6.pcap'])(
    'IBTA A17: do so with datagrams, and with the header of one that is sent back: %s',
    async (name) => {
      const { ours, linux } = await bothOf(name);
      const headersBytes = 40;
      const behind = (said: readonly Said[]): Said[] =>
        said.map((one) => ({ ...one, payload: one.payload.slice(2 * headersBytes) }));
      expect(ours[0]).toEqual(linux[0]);
      expect(behind(ours[1]!)).toEqual(behind(linux[1]!));
      // The server sends from its receive buffer: 20 unused bytes and the IPv4 header, or the IPv6 header. Version, length,
      // protocol.
      const [own, theirs] = [ours, linux].map((said) => Buffer.from(said[1]![0]!.payload, 'hex'));
      const fields = name.includes('ipv4')
        ? [
            [0, 24],
            [28, 30],
            [32, 40],
          ]
        : [[0, 10]];
      for (const [from, to] of fields)
        expect(own!.subarray(from, to).toString('hex')).toBe(theirs!.subarray(from, to).toString('hex'));
    },
  );
});
