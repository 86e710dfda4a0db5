/** Records of a timeline in words: the name of each, and its named numbers. */
import { bar0 } from '../../abi/index.ts';
import { nicBar0 } from '../../abi/nic/index.ts';
import type { RegisterTable } from '../../base/index.ts';
import { trafficClassNames } from '../../hw/dma/index.ts';
import { operationNames } from '../../hw/hca/index.ts';
import { TLP_KIND_NAMES } from '../../hw/pcie/index.ts';
import {
  dropNames,
  type HopStep,
  hopSteps,
  interruptSteps,
  noOpcode,
  packetAsksForAck,
  packetCorrupted,
  packetLost,
  packetRetransmitted,
  requestChecks,
  stageNames,
  type TimelineKindName,
  type TimelineRecord,
  timelineKinds,
} from '../../machine/timeline/index.ts';
import { frameProtocols, opcodeRow } from '../../wire/index.ts';

/** Flows of a link, by their codes in an UpdateFC. */
const flows = ['posted', 'non-posted', 'completion'] as const;

/** AETH syndromes by their upper bits (IBTA vol 1, 9.7.5.1.2). */
function syndromeText(syndrome: number): string {
  if (syndrome >>> 5 === 1) return 'RNR NAK';
  return syndrome >>> 5 === 3 ? 'NAK' : 'ACK';
}

function packetText([opcode = 0, , , , flags = 0, syndrome = 0]: readonly number[]): string {
  const row = opcodeRow(opcode);
  const name = row?.name ?? `opcode 0x${opcode.toString(16)}`;
  const isAcknowledge = row?.name === 'RC_ACKNOWLEDGE' || row?.name === 'XRC_ACKNOWLEDGE';
  const answer = isAcknowledge && syndrome >>> 5 !== 0 ? ` (${syndromeText(syndrome)})` : '';
  return `${name}${answer}${marksOf(flags)}`;
}

const marks = [
  [packetRetransmitted, ' again'],
  [packetCorrupted, ' corrupted'],
  [packetLost, ' never arrives'],
] as const;
const marksOf = (flags: number): string =>
  marks.map(([bit, text]) => ((flags & bit) === 0 ? '' : text)).join('');

type Texts = { readonly [K in TimelineKindName]: (record: TimelineRecord) => string };

const first = ({ track, values }: TimelineRecord): string => track.names?.[values[0]!] ?? `${values[0]}`;
const operationText = (opcode: number): string => operationNames[opcode] ?? `opcode ${opcode}`;

const texts: Texts = {
  blockBusy: () => 'busy',
  blockStalled: (record) => `stalled: ${first(record)}`,
  tlp: ({ values }) => `${TLP_KIND_NAMES[values[0]!]} ${trafficClassNames[values[4]!]}`,
  updateFc: ({ values }) => `UpdateFC ${flows[values[0]!]}`,
  packet: ({ values }) => packetText(values),
  flowControl: () => 'flow control',
  frame: ({ values: [, flags = 0, protocol = 0] }) => `${frameProtocols[protocol]}${marksOf(flags)}`,
  dmaRead: ({ values }) => (values[2] === 0 ? 'read' : 'read failed'),
  dmaWrite: () => 'write',
  doorbell: () => 'send doorbell',
  blueFlame: () => 'BlueFlame post',
  cqArm: () => 'CQ arm',
  eqDoorbell: () => 'EQ doorbell',
  cacheHit: (record) => `hit: ${first(record)}`,
  cacheMiss: (record) => `miss: ${first(record)}`,
  accessRefused: (record) => `refused: ${first(record)}`,
  requestRefused: ({ values }) => `request refused: ${requestChecks[values[1]!]}`,
  errorCompletion: ({ values }) => `completion with syndrome 0x${values[2]!.toString(16)}`,
  level: ({ track }) => track.name,
  posted: ({ values }) => `posted ${operationText(values[2]!)}`,
  operation: ({ values }) => operationText(values[2]!),
  stage: ({ values }) => stageNames[values[0]!]!,
  failed: ({ values }) => `failed ${operationText(values[2]!)}`,
  taken: ({ values }) => `taken ${operationText(values[2]!)}`,
  interrupt: ({ values }) => interruptSteps[values[0]!]!,
  interruptServed: () => 'handler',
  core: (record) => first(record),
  registerWrite: ({ track, values }) => `write ${registerName(track.process, values[1]!)}`,
  registerRead: ({ track, values }) => `read ${registerName(track.process, values[1]!)}`,
  hop: ({ values }) => hopText(values),
  queueWait: ({ values }) => `${hopWords[hopSteps[values[0]!]!]} (port ${values[1]})`,
  senderStopped: ({ values }) => `sender stopped, priority ${values[0]}`,
  answerFormed: () => 'answer formed',
  switchDrop: ({ values: [drop = 0, , , opcode = 0] }) => `dropped ${packetName(opcode)}: ${dropNames[drop]}`,
};

/** Steps of a packet in a switch, in words. */
export const hopWords: Readonly<Record<HopStep, string>> = {
  forwarding: 'finds its output',
  headOfLine: 'waits behind others of its input',
  output: 'waits for the busy output',
  input: 'waits for its busy input',
  credits: 'waits for credits of the next buffer',
  pause: 'waits for the end of a pause',
  link: 'waits for the link',
  sending: 'leaves',
  storing: 'is stored until its last byte has come: its output is busy, paused or faster (not cut through)',
};

const packetName = (opcode: number): string => (opcode === noOpcode ? 'frame' : packetText([opcode]));

/** On an output's track, packets have their names. */
function hopText([step = 0, , , , opcode = 0]: readonly number[]): string {
  const name = hopSteps[step]!;
  return name === 'sending' ? packetName(opcode) : `${packetName(opcode)} ${hopWords[name]}`;
}

/** Name of a record. */
export const labelOf = (record: TimelineRecord): string => texts[record.kind](record);

/** Numbers that are usually written in hexadecimal. */
const inHexadecimal: ReadonlySet<string> = new Set([
  'qpn',
  'destinationQpn',
  'address',
  'entry',
  'offset',
  'value',
]);

/** The numbers of a record by name; values with names are shown in words. */
export function argumentsOf(record: TimelineRecord): readonly (readonly [string, string | number])[] {
  const names: readonly string[] = timelineKinds[record.kind].values;
  return names.map((name, index) => [name, argumentText(record, name, record.values[index]!)]);
}

const opcodesOfPackets: ReadonlySet<string> = new Set(['packet', 'requestRefused', 'hop', 'switchDrop']);

function argumentText({ kind, track }: TimelineRecord, name: string, value: number): string | number {
  if (name === 'type') return TLP_KIND_NAMES[value]!;
  if (name === 'trafficClass') return trafficClassNames[value]!;
  if (name === 'opcode')
    return opcodesOfPackets.has(kind) ? (opcodeRow(value)?.name ?? value) : operationText(value);
  if (name === 'stage') return stageNames[value]!;
  if (name === 'check') return requestChecks[value]!;
  if (name === 'step') return kind === 'hop' ? hopSteps[value]! : interruptSteps[value]!;
  if (name === 'cause' && kind === 'queueWait') return hopSteps[value]!;
  if (name === 'drop') return dropNames[value]!;
  if (name === 'flow') return flows[value]!;
  if (name === 'protocol') return frameProtocols[value]!;
  if (name === 'flags' && (value & packetAsksForAck) !== 0) return `${value} (asks for an ACK)`;
  if (name === 'reason' || name === 'user' || name === 'cause') return track.names?.[value] ?? value;
  return inHexadecimal.has(name) ? `0x${value.toString(16)}` : value;
}

/** The register of BAR0 at an offset: its name, and the byte offset within it. */
export function registerName(process: string, offset: number): string {
  const bank = process.startsWith('nic') ? nicBar0 : bar0;
  const registers: RegisterTable = bank.registers;
  const name = bank.nameAt(offset);
  if (name === undefined) return `0x${offset.toString(16)}`;
  const within = offset - registers[name]!.offset;
  return within === 0 ? name : `${name}+0x${within.toString(16)}`;
}
