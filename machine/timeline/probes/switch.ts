/** Probes of a switch: each packet's way through it, the waits of its queues, the bytes that they hold. */
import type { Picoseconds } from '../../../base/index.ts';
import {
  type Departure,
  EthernetSwitch,
  type InfinibandPacket,
  type InfinibandSwitch,
  type StoredFrame,
  type SwitchDrop,
  type SwitchTap,
  type SwitchWait,
  switchDrops,
} from '../../../hw/switch/index.ts';
import { packetSeenIn, responseRecord } from '../../../wire/index.ts';
import { hopStepNumbers, noOpcode } from '../kinds.ts';
import type { Stream } from '../stream.ts';
import { watchLevel } from './blocks.ts';

/** Opcode, destination QPN, PSN and payload bytes of a packet. */
type SeenPacket = readonly [opcode: number, destinationQpn: number, psn: number, payloadBytes: number];

const noPacket: SeenPacket = [noOpcode, 0, 0, 0];

export function watchSwitch(stream: Stream, device: InfinibandSwitch | EthernetSwitch): void {
  if (device instanceof EthernetSwitch) watchEthernetSwitch(stream, device);
  else watchInfinibandSwitch(stream, device);
}

function watchInfinibandSwitch(stream: Stream, device: InfinibandSwitch): void {
  for (const [index, port] of device.ports.entries())
    if (port !== undefined)
      watchLevel(
        stream,
        `port ${index + 1}: input bytes`,
        port,
        ['deliver', 'consume'],
        () => port.receiveBufferedBytes,
      );
  if (!stream.has('switches') && !stream.has('checks')) return;
  const queues = device.laneCount + 1;
  device.tap = new PassageLog<InfinibandPacket>(stream, {
    keyOf: ({ input, offset }) => `${input} ${offset}`,
    inputOf: ({ input }) => input,
    seenIn: ({ input, offset }) => {
      const { rxBytes } = device.ports[input - 1]!;
      const { opcode, destinationQpn, psn, payloadBytes } = responseRecord.decode(rxBytes, offset);
      return [opcode, destinationQpn, psn, payloadBytes];
    },
    isLoss: () => true,
    waitTrackOf: (queue) => [1 + Math.floor(queue / queues), laneName(queue % queues, queues)],
  });
}

/** Name of a queue of an input: the last one is that of lane 15. */
const laneName = (lane: number, queues: number): string =>
  lane === queues - 1 ? 'input, lane 15' : queues === 2 ? 'input' : `input, lane ${lane}`;

/** Reasons for which an Ethernet switch loses a frame. */
const ethernetLosses: ReadonlySet<SwitchDrop> = new Set(['noRoom', 'queueFull', 'pauseWatchdog', 'wrongFcs']);

function watchEthernetSwitch(stream: Stream, device: EthernetSwitch): void {
  const used = device.ports.flatMap((port, index) => (port === undefined ? [] : [index + 1]));
  watchLevel(
    stream,
    'shared buffer bytes',
    device.buffer,
    ['take', 'release'],
    () => device.buffer.usedBytes,
  );
  for (const [input, number] of used.entries())
    watchLevel(
      stream,
      `port ${number}: input bytes`,
      device.buffer,
      ['take', 'release'],
      () => device.buffer.heldBy(input).bytes,
    );
  if (!stream.has('switches') && !stream.has('checks')) return;
  const log = new PassageLog<StoredFrame>(stream, {
    keyOf: (frame) => frame,
    inputOf: ({ input }) => used[input]!,
    seenIn: ({ bytes, frameBytes }) => {
      const seen = packetSeenIn(bytes, 0, frameBytes);
      return seen === undefined ? noPacket : [seen.opcode, seen.destinationQpn, seen.psn, seen.payloadBytes];
    },
    isLoss: (reason) => ethernetLosses.has(reason),
    waitTrackOf: (queue) => [queue >>> 3, `queue ${queue & 7}`],
  });
  device.tap = log;
  for (const number of used)
    watchLevel(
      stream,
      `port ${number}: queue bytes`,
      log,
      ['settled'],
      () => device.statisticsOf(number).queuedBytes,
    );
}

/** Packets and queues of one kind of switch, for the log. */
interface PassageWords<Packet> {
  /** Identity of a packet. */
  readonly keyOf: (packet: Packet) => unknown;
  readonly inputOf: (packet: Packet) => number;
  readonly seenIn: (packet: Packet) => SeenPacket;
  /** Whether a drop for this reason loses the packet: flooded frames end where they need not go further. */
  readonly isLoss: (reason: SwitchDrop) => boolean;
  /** Port and name of the track of a queue's waits. */
  readonly waitTrackOf: (queue: number) => readonly [port: number, name: string];
}

/** A packet in the switch; its instants are of the present epoch. */
interface Passage {
  readonly seen: SeenPacket;
  arrivedPs: Picoseconds;
  /** Arrival of its last bit if the switch stored it instead of cutting it through; otherwise of its first. */
  tailPs: Picoseconds;
  readyPs: Picoseconds;
}

/** Causes of a queue's waits one after another, from the oldest that a waiting packet has seen. */
interface QueueHistory {
  readonly causes: { fromPs: Picoseconds; readonly cause: SwitchWait | undefined; readonly output: number }[];
}

const isSame = (
  last: QueueHistory['causes'][number],
  cause: SwitchWait | undefined,
  output: number,
): boolean => last.cause === cause && (cause === undefined || last.output === output);

/** Turns the reports of a switch into records: steps that tile each packet's time in it. */
class PassageLog<Packet> implements SwitchTap<Packet> {
  readonly #stream: Stream;
  readonly #words: PassageWords<Packet>;
  /** Whether passages and waits are requested; else drops alone. */
  readonly #hasPassages: boolean;
  readonly #passages = new Map<unknown, Passage>();
  readonly #queues = new Map<number, QueueHistory>();
  /** Since when senders are stopped, by port and priority. */
  readonly #stopped = new Map<string, { fromPs: Picoseconds }>();
  #count = 0;

  constructor(stream: Stream, words: PassageWords<Packet>) {
    this.#stream = stream;
    this.#words = words;
    this.#hasPassages = stream.has('switches');
    stream.lp.addTimeKeeper(this);
    stream.addOpenEnd(() => this.#noteOpenWaits());
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const passage of this.#passages.values()) {
      passage.arrivedPs -= ps;
      passage.tailPs -= ps;
      passage.readyPs -= ps;
    }
    for (const { causes } of this.#queues.values()) for (const each of causes) each.fromPs -= ps;
    for (const each of this.#stopped.values()) each.fromPs -= ps;
  }

  arrived(packet: Packet, _input: number, readyPs: Picoseconds): void {
    if (!this.#hasPassages) return;
    const { keyOf, seenIn } = this.#words;
    const arrivedPs = this.#stream.lp.nowPs;
    this.#passages.set(keyOf(packet), { seen: seenIn(packet), arrivedPs, tailPs: arrivedPs, readyPs });
  }

  stores(packet: Packet, tailPs: Picoseconds, readyPs: Picoseconds): void {
    const passage = this.#passages.get(this.#words.keyOf(packet));
    if (passage === undefined) return;
    passage.tailPs = tailPs;
    passage.readyPs = readyPs;
  }

  waits(queue: number, cause: SwitchWait | undefined, output: number): void {
    if (!this.#hasPassages) return;
    const { causes } = this.#historyOf(queue);
    const last = causes.at(-1);
    if (last === undefined ? cause === undefined : isSame(last, cause, output)) return;
    const { nowPs } = this.#stream.lp;
    if (last?.cause !== undefined) this.#noteWait(queue, last, nowPs);
    causes.push({ fromPs: nowPs, cause, output });
  }

  leaves(packet: Packet, { output, queue, firstSincePs = 0, untilPs }: Departure): void {
    const passage = this.#passages.get(this.#words.keyOf(packet));
    if (passage === undefined) return;
    const { nowPs } = this.#stream.lp;
    const input = this.#words.inputOf(packet);
    const number = ++this.#count;
    const note = (step: keyof typeof hopStepNumbers, track: number, fromPs: number, toPs: number): void => {
      if (toPs <= fromPs) return;
      const numbers = [hopStepNumbers[step], number, input, output, ...passage.seen];
      this.#stream.interval('hop', track, fromPs, toPs, ...numbers);
    };
    const { arrivedPs, tailPs, readyPs } = passage;
    const waitTrack = this.#waitTrackOf(queue);
    note('storing', this.#track(input, 'forwarding'), arrivedPs, tailPs);
    note('forwarding', this.#track(input, 'forwarding'), tailPs, readyPs);
    const firstPs = Math.max(readyPs, firstSincePs);
    note('headOfLine', waitTrack, readyPs, firstPs);
    const { causes } = this.#historyOf(queue);
    for (const [at, { fromPs, cause = 'link' }] of causes.entries()) {
      const toPs = Math.min(nowPs, causes[at + 1]?.fromPs ?? nowPs);
      note(cause, waitTrack, Math.max(firstPs, fromPs), toPs);
    }
    note('sending', this.#track(output, 'output'), nowPs, untilPs);
    // Packets that wait became subject to the queue's cause no earlier.
    while (causes.length > 1 && causes[1]!.fromPs <= firstPs) causes.shift();
  }

  dropped(packet: Packet, reason: SwitchDrop, output = 0): void {
    if (!this.#stream.has('checks')) return;
    const { inputOf, seenIn, isLoss } = this.#words;
    const input = inputOf(packet);
    const { nowPs } = this.#stream.lp;
    const seen = seenIn(packet);
    const numbers = [switchDrops.indexOf(reason), input, output, ...seen, isLoss(reason) ? 1 : 0];
    this.#stream.instant('switchDrop', this.#track(output || input, 'drops'), nowPs, ...numbers);
  }

  released(packet: Packet): void {
    this.#passages.delete(this.#words.keyOf(packet));
  }

  stops(port: number, priority: number, isToStop: boolean): void {
    if (!this.#hasPassages) return;
    const key = `${port} ${priority}`;
    const { nowPs } = this.#stream.lp;
    const since = this.#stopped.get(key);
    if (isToStop) this.#stopped.set(key, { fromPs: nowPs });
    else if (since !== undefined) {
      this.#stream.interval(
        'senderStopped',
        this.#track(port, 'sender stopped'),
        since.fromPs,
        nowPs,
        priority,
      );
      this.#stopped.delete(key);
    }
  }

  settled(): void {}

  /** Waits that have not ended, up to now. */
  #noteOpenWaits(): void {
    const { nowPs } = this.#stream.lp;
    for (const [queue, { causes }] of this.#queues) {
      const last = causes.at(-1);
      if (last?.cause !== undefined) this.#noteWait(queue, last, nowPs);
    }
  }

  #historyOf(queue: number): QueueHistory {
    const history = this.#queues.get(queue) ?? { causes: [] };
    this.#queues.set(queue, history);
    return history;
  }

  #noteWait(queue: number, { fromPs, cause, output }: QueueHistory['causes'][number], toPs: number): void {
    const [port, name] = this.#words.waitTrackOf(queue);
    const numbers = [hopStepNumbers[cause!], output];
    this.#stream.interval('queueWait', this.#track(port, `${name}: waits`), fromPs, toPs, ...numbers);
  }

  #waitTrackOf(queue: number): number {
    return this.#track(...this.#words.waitTrackOf(queue));
  }

  #track(port: number, name: string): number {
    return this.#stream.track(`port ${port}`, name);
  }
}
