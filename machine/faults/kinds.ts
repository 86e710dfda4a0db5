/**
 * The kinds of faults, each declared once: its fields, its effect, the symptoms in software, and an example option. The
 * first field has the name of the kind. docs/how-to/faults.md and `hca faults` are generated from this table.
 */
import { psPerSecond } from '../../base/index.ts';
import { FAULT_DELAY_PS_MAX } from '../../wire/index.ts';
import { hostPortMax, nodeCountMax, switchPortMax } from '../topology/index.ts';
import {
  action,
  chance,
  choice,
  command,
  type Fields,
  integer,
  type Nth,
  nth,
  optional,
  packetOpcode,
  psns,
  status,
  time,
  type ValuesOf,
} from './fields.ts';

/** Classes of the device's reads, by their names in reports. */
const readClasses = [
  'any',
  'wqeRead',
  'payloadRead',
  'doorbellRecord',
  'context',
  'translation',
  'command',
] as const;

/** Start and duration of a fault of the whole device. */
const beginning = {
  at: optional(time('simulated time since the start')),
  after: optional(
    action('instead of at: once software has done this to the device (commands count when they have ended)'),
  ),
  nth: nth('which of these'),
  delay: optional(time('delay after that')),
};
const lasting = { for: optional(time('how long it lasts; indefinitely if left out')) };

export interface Kind<Table extends Fields = Fields> {
  readonly fields: Table;
  /** Effect of the fault. */
  readonly doc: string;
  /** Symptoms at the driver and programs. */
  readonly seen: string;
  /** An example option. */
  readonly example: string;
  /** Further example options for other variants. */
  readonly more?: readonly string[];
}

/** Port of the adapter, or of a switch. */
const byPort = {
  portNumber: optional(
    integer(1, switchPortMax, 'which port, 1 when left out; another one where the topology has a link there'),
  ),
  to: optional(
    integer(
      0,
      nodeCountMax - 1,
      'instead of portNumber: the node at the other end of the cable; node and to may both be switches',
    ),
  ),
};

const kind = <Table extends Fields>(declared: Kind<Table>): Kind<Table> => declared;

export const faultKinds = {
  command: kind({
    fields: {
      command: command('which command'),
      nth: nth('which of these commands'),
      status: status('status of the command, which is not executed'),
    },
    doc: 'A command ends with the given status, or never.',
    seen: 'The call fails with the errno of the status and leaves no object. A command that never ends: the time limit of the driver expires, the device counts as dead, IBV_EVENT_DEVICE_FATAL, reset and a new probe.',
    example: 'command=SW2HW_CQ,nth=2,status=BAD_RES_STATE',
  }),
  interrupt: kind({
    fields: {
      interrupt: choice(['lost', 'late', 'spurious'], 'effect on the message'),
      vector: optional(integer(0, 2047, 'only messages of this vector; the vector of a spurious one')),
      nth: nth(
        'which message of the device (of the vector, when one is named); the one that a spurious one follows',
      ),
      delay: optional(time('how late')),
      at: optional(time('when a spurious one arrives, instead of nth')),
    },
    doc: 'An MSI-X message is lost or late, or one arrives that the device never sent.',
    seen: "Lost: the driver's watchdog finds the entries in the event queue and continues. Late: everything later. Spurious: a handler that finds nothing.",
    example: 'interrupt=lost,nth=3',
  }),
  read: kind({
    fields: {
      read: choice(readClasses, 'reads of the device by traffic class'),
      nth: nth('which of these reads'),
      answer: choice(
        ['lost', 'unsupportedRequest', 'completerAbort', 'poisoned'],
        'no completion (the device runs into its completion timeout), UR, CA, or data with the poisoned bit',
      ),
    },
    doc: 'The host answers a read of the device (DMA) wrongly, or not at all.',
    seen: 'A command: INTERNAL_ERR, EIO. A work request: a completion with an error and the rest flushed, or IBV_EVENT_QP_FATAL when its queue could not be read. A READ or atomic of the peer: IBV_WC_REM_OP_ERR there, IBV_EVENT_QP_ACCESS_ERR here.',
    example: 'read=wqeRead,nth=3,answer=poisoned',
  }),
  reset: kind({
    fields: {
      reset: choice(['stuck'], 'the device does not return'),
      nth: nth('which reset written to the reset register'),
      ...lasting,
    },
    doc: 'After a reset the function does not answer: the vendor id reads 0xffff.',
    seen: 'Probe waits 2 s for the vendor id, then fails with ENODEV and releases everything; it continues if the device returns before.',
    example: 'reset=stuck,for=500ms',
  }),
  semaphore: kind({
    fields: { semaphore: choice(['held'], 'it reads as taken'), ...beginning, ...lasting },
    doc: 'The hardware semaphore is held by another owner.',
    seen: 'Probe waits 10 s for it, then fails with ENODEV.',
    example: 'semaphore=held,for=20ms',
  }),
  owner: kind({
    fields: { owner: choice(['taken'], 'it reads as taken'), ...beginning, ...lasting },
    doc: 'The owner register says that another driver has the device.',
    seen: 'Probe fails with ENODEV at once and leaves the device alone.',
    example: 'owner=taken',
  }),
  catastrophic: kind({
    fields: {
      catastrophic: integer(1, 0xffff_ffff, 'code in the first word of the error buffer'),
      ...beginning,
    },
    doc: 'A fatal error of the firmware: the error buffer of QUERY_FW reads the code, an event 0x08 is posted if software mapped it, no command is executed and no packet is sent until the next reset.',
    seen: "The driver's health timer reads the code, reports IBV_EVENT_DEVICE_FATAL, resets the device and probes it again; contexts that were open answer EIO.",
    example: 'catastrophic=0xdead,after=RTR2RTS_QP,delay=20us',
  }),
  port: kind({
    fields: { port: choice(['down', 'up'], 'action of the port'), ...byPort, ...beginning, ...lasting },
    doc: 'A port goes down (its end of the link is disabled) or comes up. A switch executes no commands: its ports take at, not after.',
    seen: 'IBV_EVENT_PORT_ERR, and IBV_EVENT_PORT_ACTIVE when it is back; requests are retried until their retries are used up.',
    example: 'port=down,after=RTR2RTS_QP,delay=5us,for=200us',
    more: ['port=down,node=4,portNumber=1,at=8ms,for=200us'],
  }),
  cable: kind({
    fields: {
      cable: choice(['pulled', 'plugged'], 'change of the cable'),
      ...byPort,
      ...beginning,
      ...lasting,
    },
    doc: 'The cable is pulled out of a port of this node, or plugged in. Routes through switches stay: packets that lead over it are discarded.',
    seen: 'As with the port, at both ends of the cable.',
    example: 'cable=pulled,after=RTR2RTS_QP,delay=5us,for=200us',
    more: ['cable=pulled,node=4,to=5,at=8ms,for=200us'],
  }),
  device: kind({
    fields: { device: choice(['gone'], 'it is not there'), ...beginning, ...lasting },
    doc: 'The device disappears from its slot: reads return all ones, writes are dropped, no DMA, no interrupts, no link on the cable. When it returns its state is that after power-on.',
    seen: 'The driver sees all ones, declares the device dead (IBV_EVENT_DEVICE_FATAL, EIO), releases its resources, and probes again when the device is back.',
    example: 'device=gone,after=RTR2RTS_QP,delay=10us',
  }),
  packet: kind({
    fields: {
      packet: choice(
        ['corrupted', 'late', 'lost', 'duplicated', 'reordered', 'congested'],
        'what happens on the cable; late: the link is held, and all packets after it; congested: it is marked: FECN on a cable of InfiniBand, and on one of Ethernet, with hca.capability.roce=v2, CE in an IP header that says ECT, as the traffic class has it',
      ),
      ...byPort,
      qpn: optional(
        integer(0, 0xff_ffff, 'only packets to this QP number, which is the one at the other end'),
      ),
      psn: optional(
        psns(
          'only packets with these PSNs; counted from the first, which is the first that the fault has seen of the connection in its direction',
        ),
      ),
      opcode: optional(packetOpcode('only packets with this opcode')),
      only: optional(
        choice(
          ['requests', 'responses', 'datagrams', 'pauses'],
          'only these packets; pauses: the PAUSE frames that a port of Ethernet sends, which no other fault concerns',
        ),
      ),
      nth: optional(
        nth(
          'which packet sent by this node, of those that the fields above name; left out: the first, or every one where a field above, chance or shots is given',
        ),
      ),
      chance: optional(chance('probability for each of these packets')),
      seed: optional(integer(0, 0xffff_ffff, 'of chance; the seed of the run when left out')),
      shots: optional(integer(1, 1e9, 'maximum number of times')),
      delay: optional(
        time(
          'how late; how long after its packet a copy leaves, 1us when left out; how long a packet waits for others to pass it, 10us when left out',
        ),
      ),
      by: optional(
        integer(1, 1024, 'how many packets of its virtual lane pass a reordered one, 1 when left out'),
      ),
      where: optional(
        choice(
          ['anywhere', 'header', 'payload'],
          'part of the packet in which a bit is flipped; default: anywhere; payload, on a cable of Ethernet, counts only frames that have some: bytes after the headers of TCP or UDP, or with RoCE the payload and the ICRC',
        ),
      ),
      crc: optional(
        choice(
          ['vcrc', 'icrc'],
          'which CRC is wrong: the VCRC, when left out, or the ICRC alone, as of a packet that was damaged within a switch',
        ),
      ),
    },
    doc: 'A packet is corrupted on the cable, or lost, late, doubled, overtaken by later packets, or marked, as on paths through a fabric. Packets are selected by number, by their headers, or by chance. Copies and packets that were passed take their place on the link, and their credits, when they leave; one packet at a time is passed, and 256 copies wait at most. On a cable of Ethernet a packet is a frame; only packets of RoCE have the headers that qpn, psn, opcode and only name, so these are refused with iWARP, except only=pauses; and a mark of congestion counts only frames that take one.',
    seen: 'A delay on a reliable connection: missing packets are retransmitted, doubled ones are not executed again. Every packet corrupted or lost: IBV_WC_RETRY_EXC_ERR. Unreliable connections lose messages; a doubled datagram uses two receives. A mark changes nothing unless hca.congestion.algorithm is dcqcn or cct; captures show it.',
    example: 'packet=corrupted,nth=5',
    more: [
      'packet=lost,psn=+7,only=requests,shots=2',
      'packet=late,psn=+50-150,delay=1us',
      'packet=lost,chance=10%',
      'packet=corrupted,chance=1%,where=payload,crc=icrc',
      'packet=lost,node=4,to=5,chance=1%',
      'packet=late,node=4,to=5,chance=100%,delay=1us',
    ],
  }),
  forwarding: kind({
    fields: {
      forwarding: choice(['wrong', 'none'], 'the entry leads to another port, or to none'),
      host: integer(0, nodeCountMax - 1, 'host whose entry it is'),
      hostPort: optional(integer(1, hostPortMax, 'which port of that host, 1 when left out')),
      output: optional(integer(1, switchPortMax, 'port to which a wrong entry leads')),
      at: optional(time('simulated time since the start; from power-on if left out')),
      ...lasting,
    },
    doc: 'An entry of the forwarding table of an InfiniBand switch is written wrong.',
    seen: 'Packets to that host are dropped (noRoute; ownPort where they would leave by the port by which they came), circle, or arrive at another host, which drops them: retries, then IBV_WC_RETRY_EXC_ERR.',
    example: 'forwarding=none,node=4,host=2,at=8ms,for=200us',
    more: ['forwarding=wrong,node=4,host=2,output=1,at=8ms,for=200us'],
  }),
};

type FaultKinds = typeof faultKinds;
export type FaultKind = keyof FaultKinds;

/** A checked fault of one kind: times in picoseconds, names as numbers. */
export type FaultOf<Name extends FaultKind> = {
  readonly kind: Name;
  readonly node: number;
} & ValuesOf<FaultKinds[Name]['fields']>;

export type Fault = { [Name in FaultKind]: FaultOf<Name> }[FaultKind];

/** A fault of the whole device that begins at some time. */
export type TimedFault = Extract<Fault, { readonly after: unknown }>;

/**
 * Checks the combination of fields, which no field's own parser can check.
 * @returns the error: field, value, range
 */
export function contradictionOf(fault: Fault): readonly [string, unknown, string] | undefined {
  if (fault.kind === 'interrupt') {
    if (fault.interrupt === 'late' && fault.delay === undefined) return ['delay', 'left out', 'a time'];
    if (fault.interrupt !== 'spurious') {
      return fault.at === undefined ? undefined : ['at', fault.at, 'left out: nth says which message'];
    }
    if (fault.vector === undefined) return ['vector', 'left out', 'the vector of the message'];
    if (fault.at !== undefined && fault.delay !== undefined)
      return ['delay', fault.delay, 'left out when at is given'];
  } else if (fault.kind === 'packet') {
    return packetContradictionOf(fault);
  } else if (fault.kind === 'forwarding') {
    if (fault.forwarding === 'wrong' && fault.output === undefined) return ['output', 'left out', 'a port'];
    if (fault.forwarding === 'none' && fault.output !== undefined)
      return ['output', fault.output, 'left out unless forwarding is wrong'];
  } else if ('after' in fault) {
    return beginningOf(fault);
  }
  return undefined;
}

function packetContradictionOf(fault: FaultOf<'packet'>): readonly [string, unknown, string] | undefined {
  const { packet, delay, by, where, crc, seed, chance: share } = fault;
  if (packet === 'late' && delay === undefined) return ['delay', 'left out', 'a time'];
  if ((packet === 'duplicated' || packet === 'reordered') && delay === 0)
    return ['delay', delay, 'at least 1ps'];
  if (by !== undefined && packet !== 'reordered') return ['by', by, 'left out unless packet is reordered'];
  if (packet !== 'corrupted') {
    if (where !== undefined) return ['where', where, 'left out unless packet is corrupted'];
    if (crc !== undefined) return ['crc', crc, 'left out unless packet is corrupted'];
  }
  if (seed !== undefined && share === undefined) return ['seed', seed, 'left out when chance is not given'];
  if (delay !== undefined && delay > FAULT_DELAY_PS_MAX)
    return ['delay', delay, `at most ${FAULT_DELAY_PS_MAX / psPerSecond}s`];
  return undefined;
}

/** Whether a fault selects packets by more than their number. */
export const isByRule = (fault: FaultOf<'packet'>): boolean =>
  packetRuleFields.some((name) => fault[name] !== undefined);

/** Canonical form of a fault: if no packet is named, the first one is meant. */
export function plainest(fault: Fault): Fault {
  if (fault.kind !== 'packet' || isByRule(fault) || fault.nth === undefined) return fault;
  return fault.nth.first === 1 && fault.nth.last === 1 ? { ...fault, nth: undefined } : fault;
}

/** The packets of a fault that selects them only by number. */
export const packetNthOf = ({ nth: given }: FaultOf<'packet'>): Nth => given ?? { first: 1, last: 1 };

const packetRuleFields = ['qpn', 'psn', 'opcode', 'only', 'chance', 'shots', 'where', 'crc'] as const;

function beginningOf(fault: TimedFault): readonly [string, unknown, string] | undefined {
  if (fault.at !== undefined && fault.after !== undefined)
    return ['at', fault.at, 'left out when after is given'];
  if (fault.delay !== undefined && fault.after === undefined)
    return ['delay', fault.delay, 'left out when after is not given'];
  const isFromPowerOn = fault.kind === 'owner' || fault.kind === 'semaphore';
  if (fault.at === undefined && fault.after === undefined && !isFromPowerOn)
    return ['at', 'left out', 'a time, or after with what software does'];
  return undefined;
}
