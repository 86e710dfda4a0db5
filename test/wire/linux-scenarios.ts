/** The runs of the captures in `reference/wire`: wt's notation, and the relay's treatment of frames, as faults. */
import { readFileSync } from 'node:fs';
import { readCapture } from '../../analyser/capture/index.ts';
import { decodeEthernet, opcodeRow, type WirePacket } from '../../wire/index.ts';
import type { LinuxScenario, LinuxStep, LinuxWork } from '../programs/linux-scenario.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const page = readFileSync(new URL('README.md', folder), 'utf8');

/**
 * Frames as long as the captured ones, and a cable on which all requests posted at once have left before the first answer
 * arrives, as between those machines; each request has its own acknowledgement.
 */
export const linuxMachines = {
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': 'v2',
  'hca.ackDelayCycles': 0,
  'ethernet.mtuBytes': 4200,
  'ethernet.cableMetres': 10_000,
};

/** A packet of RDMA, and the end that sent it. */
export interface SentPacket {
  readonly node: number;
  readonly packet: WirePacket;
  readonly comment: string;
}

/** Files for which the page lists wt's options, without those of connection management. */
export const scenarioNames: readonly string[] = [
  ...page.matchAll(/^\| (\S+\.pcap(?:ng)?) \| \d+ \| `wt ([^`]*)`/gm),
]
  .filter(([, , command]) => !command!.includes('-cm'))
  .map(([, name]) => name!);

const commandOf = (name: string): string =>
  new RegExp(`^\\| ${name.replaceAll('.', '\\.')} \\| \\d+ \\| \`wt ([^\`]*)\``, 'm').exec(page)![1]!;

const mtuCodes: Readonly<Record<number, LinuxScenario['mtu']>> = {
  256: 1,
  512: 2,
  1024: 3,
  2048: 4,
  4096: 5,
};

function workOf(text: string): LinuxWork {
  const [kind, length = '0', flags = ''] = text.split(':');
  return { kind: kind as LinuxWork['kind'], length: Number.parseInt(length, 10), flags };
}

/** `<~300@!100@send:10+read:5` */
export function stepOf(text: string): LinuxStep {
  const [, server, , late, , short, works] = /^(<?)(~(\d+)@?)?(!(\d+)@?)?@?(.*)$/.exec(text)!;
  return {
    poster: server === '<' ? 1 : 0,
    lateMs: Number(late ?? 0),
    receiveBytes: Number(short ?? 0),
    works: works!.split('+').map(workOf),
  };
}

/** Options of wt; of a repeated option the first counts. */
export function scenarioOf(name: string): LinuxScenario {
  const words = commandOf(name)
    .split(' ')
    .filter((word) => word !== '');
  const isServers = (at: number): boolean => words[at - 1] === 'server';
  const option = (flag: string, otherwise: number): number => {
    const at = words.indexOf(flag);
    return at < 0 || isServers(at) ? otherwise : Number(words[at + 1]);
  };
  const type = words[words.indexOf('-t') + 1];
  const transport = words.includes('-t') && (type === 'uc' || type === 'ud') ? type : 'rc';
  return {
    transport,
    // Link-local, or of IPv4; both by version 2.
    sgidIndex: option('-g', 1) === 0 ? 1 : 3,
    mtu: mtuCodes[option('-m', 1024)]!,
    psns: [option('-q1', 0x100), option('-q2', 0x100)],
    readsMax: option('-x', 4),
    limitMs: option('-L', 8000),
    hopLimit: option('-H', 64),
    trafficClass: option('-tc', 0),
    flowLabel: option('-fl', 0),
    timeoutCode: option('-T', 14),
    retryCount: option('-R', 7),
    rnrRetryCount: option('-N', 7),
    rnrTimerCode: option('-n', 12),
    serverGives: !words.includes('server'),
    steps: words.filter((word) => word.startsWith('op:')).map((word) => stepOf(word.slice(3))),
  };
}

/** RDMA packets in the bytes of a capture file, with their senders by `nodeOf`. */
export function packetsOf(
  bytes: Uint8Array,
  nodeOf: (packet: WirePacket, at: number) => number,
): SentPacket[] {
  return readCapture(bytes).frames.flatMap(({ bytes: frame, comment, interface: at }) => {
    const packet = decodeEthernet(frame);
    return packet.kind === 'packet' ? [{ node: nodeOf(packet, at), packet, comment }] : [];
  });
}

const clientsLastByte = 1;
/** The client of all these captures is 10.0.0.1, or fe80::5054:ff:fe00:1. */
const isOfClient = ({ ipv4, ipv6 }: WirePacket): boolean =>
  ipv4 === undefined ? ipv6!.source[15] === clientsLastByte : ipv4.source === 0x0a00_0001;

export const capturedPackets = (name: string): SentPacket[] =>
  packetsOf(readFileSync(new URL(name, folder)), (packet) => (isOfClient(packet) ? 0 : 1));

/** A copy arrives when its packet was answered, and before the program has continued. The relay's copy arrived at once, but Soft-RoCE is slower. */
const copyDelay = '20us';

const effects: readonly (readonly [RegExp, Readonly<Record<string, string | number>>])[] = [
  [/dropped/, { packet: 'lost' }],
  [/duplicate/, { packet: 'duplicated', delay: copyDelay }],
  [/held back/, { packet: 'reordered', delay: '200ms' }],
  [/delayed 300 ms/, { packet: 'late', delay: '300ms' }],
  [/bit flipped/, { packet: 'corrupted', where: 'payload', crc: 'icrc' }],
];

/** Actions of the relay, as faults of the packets with the same opcode and PSN sent by the same end. */
export function faultsOf(packets: readonly SentPacket[]): Readonly<Record<string, string | number>>[] {
  const seen = new Map<string, number>();
  return packets.flatMap(({ node, packet, comment }) => {
    const { opcode, psn } = packet.bth;
    const key = `${node} ${opcode} ${psn}`;
    const isCopy = /duplicate/.test(comment);
    const nth = (seen.get(key) ?? 0) + (isCopy ? 0 : 1);
    seen.set(key, nth);
    const effect = effects.find(([words]) => words.test(comment))?.[1];
    if (effect === undefined) return [];
    return [{ ...effect, node, opcode: opcodeRow(opcode)!.name, psn: String(psn), nth }];
  });
}
