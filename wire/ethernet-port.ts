/**
 * One end of an Ethernet cable: accepts frames from a MAC, serialises them, and delivers those of the other end.
 *
 *     canTransmit, send ──▶ preamble, frame, FCS, gap ──▶ channel (latency) ═══▶ receive fifo: frameArrived … consume
 *          ▲ spaceFreed  ▲     (exact byte times)         lost? corrupted?  │    full: dropped     │
 *                        └───────── PAUSE frames, flow-control.ts ◀─────────┴──────────────────────┘
 *
 * Promises:
 * - Full duplex. Without a MAC control sublayer, and until software enables it, flow control is off: no sender is throttled,
 *   and a receiver that cannot keep up drops and counts frames. A held frame occupies a slot of the receive fifo; its record is
 *   released to the channel on arrival, so that dropped frames never accumulate there.
 * - With flow control at both ends no frame is dropped for lack of a slot, on cables up to `pauseCableMetres`, if no PAUSE
 *   frame is lost.
 * - A frame arrives when its last bit has left at the exact rate of the link and the channel's latency has passed; at a
 *   cut-through switch when its first bit has. MAC control frames always arrive whole.
 * - A frame with a wrong frame check sequence is counted and never delivered, except to a cut-through switch: it takes
 *   the frame with its first byte, before the FCS can be checked, and may have to send it on with a wrong one.
 * - With the link down frames are discarded and counted; the caller need not check.
 * - Calls made at one instant commute with records arriving at that instant. A change of the link counts from the next
 *   picosecond on.
 *
 * The FCS has its time and its bytes on the wire; its value is not computed: a flag of the record tells whether it is right.
 * link-training.ts brings the link up; auto-negotiation and link fault signalling are not modelled. What is connected only
 * leaves work for later instants. Source: IEEE 802.3-2018, clauses 3 and 4.
 */

import {
  BlockCopier,
  InvariantError,
  layout,
  NEVER,
  type Picoseconds,
  u32,
  wordIndexOf,
} from '../base/index.ts';
import {
  type BlockState,
  type ChannelReader,
  type ChannelWriter,
  connectBlocks,
  type LogicalProcess,
  RECORD_HEADER_BYTES,
  recordHeaderFields,
} from '../sim/index.ts';
import { markCongestion } from './congestion-mark.ts';
import { isControlFrame } from './control-frames.ts';
import { damageFrame } from './damage.ts';
import {
  EthernetRearranged,
  EthernetReceiveCounters,
  EthernetTransmitCounters,
  RelayedFcsErrors,
} from './ethernet-counters.ts';
import {
  EthernetFaults,
  OUTCOME_ARRIVES,
  OUTCOME_CORRUPTED,
  OUTCOME_LOST,
  OUTCOME_STILL_WRONG,
} from './ethernet-faults.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import {
  ETHERNET_FCS_BYTES,
  ETHERNET_FRAME_MIN_BYTES,
  ETHERNET_HEADER_BYTES,
  ethernetByteTime,
  ethernetFrameBytesMax,
  ethernetLatencyPs,
  pausingFifoFrames,
} from './ethernet-sizing.ts';
import { joinedNotes, lateNote, MARKED_NOTE, overtakenNote } from './fault-notes.ts';
import { FlowControl } from './flow-control.ts';
import { type Held, HeldBack } from './held-back.ts';
import { type PacketArrival, Serializer } from './link-rate.ts';
import { LinkTraining } from './link-training.ts';
import { ANY_PRIORITY } from './priority-pauses.ts';
import { type ConcernedRules, noRules } from './wire-faults.ts';
import type { WireTap } from './wire-observer.ts';
import { type EthernetBlocks, ethernetPortWires } from './wire-port-blocks.ts';

/** Kinds of record. */
export const FRAME = 1;
const LINK_TRAINING = 2;
/** A frame lost on the cable: it has no effect, and is recorded for observers. */
export const LOST_FRAME = 3;

const recordShape = {
  sizeBytes: RECORD_HEADER_BYTES,
  byteOrder: 'little',
  source: 'wire/ethernet-port.ts',
} as const;
/** A frame, followed by its bytes. */
const { fields: frameFields } = layout('Ethernet frame record', recordShape, {
  ...recordHeaderFields,
  frameBytes: u32(0x10, 'without FCS'),
  isCorrupted: u32(0x14),
  isSentAgain: u32(0x18, 'as its first sender says; takes no effect'),
  tailDelayPs: u32(0x1c, 'from its arrival until its last bit has arrived'),
});
const { fields: trainingFields } = layout('Ethernet link training record', recordShape, {
  ...recordHeaderFields,
  step: u32(0x10),
});
/** Positions in a record, as indices into `words` from `offset >> 2`. */
export const WORD_FRAME_BYTES = wordIndexOf(frameFields.frameBytes);
export const WORD_IS_CORRUPTED = wordIndexOf(frameFields.isCorrupted);
export const WORD_IS_SENT_AGAIN = wordIndexOf(frameFields.isSentAgain);
export const WORD_TAIL_DELAY_PS = wordIndexOf(frameFields.tailDelayPs);
const WORD_TRAINING_STEP = wordIndexOf(trainingFields.step);
/** Capture comments on frames hit by a fault. */
const sentNotes: Readonly<Record<number, string>> = {
  [OUTCOME_LOST]: 'lost on the cable',
  [OUTCOME_CORRUPTED]: 'corrupted on the cable',
  [OUTCOME_STILL_WRONG]: 'its frame check sequence is wrong, as it came: it was cut through',
};
const copyNote = 'a copy, made by a fault';
const insideNote = 'damaged within a switch by a fault';
/** The same for frames that arrived and were dropped. */
const linkDownNote = 'dropped: the link is down';
const corruptedNote = 'dropped: its frame check sequence is wrong';
const corruptedHeadNote = 'its frame check sequence is wrong';
const fullNote = 'dropped: the receive fifo is full';
const strangeControlNote = 'dropped: a MAC control frame, and no PAUSE for this station';
/** Copies are fastest between offsets that are multiples of it. */
const COPY_ALIGNMENT = 8;

/** A held-back frame, as it was handed over. */
interface HeldFrame extends Held {
  readonly bytes: Uint8Array;
  readonly isSentAgain: boolean;
  readonly outcome: number;
  /** Number of frames that overtake it in all, and still to come. */
  readonly passes: number;
  passesLeft: number;
  /** Other effects of faults on it, for a capture. */
  readonly remark: string;
}

export interface EthernetPortOptions {
  readonly lp: LogicalProcess;
  readonly config: EthernetConfig;
  /** Channels of `ethernetChannelBytes` bytes to and from the other end. */
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** Seed of loss and corruption; each port draws from its own stream, named after the logical process. */
  readonly seed: number;
  /** MAC of the station, 48 bits, if the port has a MAC control sublayer: then MAC control frames stop here, and software may enable flow control. */
  readonly controlMac?: number | undefined;
  /** Name of its random numbers; left out: that of the logical process, which has one port. */
  readonly stream?: string | undefined;
  /** Slots of the receive fifo if frames are held elsewhere, and flow control is requested there; left out: as many as flow control needs. */
  readonly slotCount?: number | undefined;
  /** When frames sent from here arrive: `head` at a cut-through switch; default `tail`. */
  readonly sentArrival?: PacketArrival | undefined;
}

export interface EthernetPortPorts {
  readonly receiver: {
    /**
     * A frame has arrived in a slot of the receive fifo, to be released by {@link EthernetPort.consume}.
     * @param tailDelayPs until its last bit has arrived: 0 for a frame that arrived whole, which is right
     * @param isCorrupted whether its frame check sequence will be wrong
     */
    frameArrived(slot: number, tailDelayPs: Picoseconds, isCorrupted: boolean): void;
  };
  readonly sender: {
    /** A refused frame may now be accepted. */
    spaceFreed(): void;
  };
  readonly link: {
    /** Notes that the link came up or went down. */
    linkChanged(isUp: boolean, nowPs: Picoseconds): void;
  };
}

export class EthernetPort {
  readonly config: EthernetConfig;
  readonly transmitted = new EthernetTransmitCounters();
  readonly received = new EthernetReceiveCounters();
  readonly rearranged = new EthernetRearranged();
  readonly relayed = new RelayedFcsErrors();
  readonly faults: EthernetFaults;
  /** Longest frame this port carries, without FCS. */
  readonly frameBytesMax: number;
  /** The receive fifo: a frame's bytes begin at {@link frameStart}. */
  readonly rxBytes: Uint8Array;
  readonly blocks: EthernetBlocks;
  readonly flowControl: FlowControl;
  /** Limit of frames in the receive fifo; those beyond `receiveFifoFrames` are headroom, used while PAUSE frames are sent. */
  readonly slotCount: number;
  /** Observes the frames that pass this end, without FCS; left out: no observer. */
  tap: WireTap | undefined = undefined;

  readonly #lp: LogicalProcess;
  readonly #writer: ChannelWriter;
  readonly #reader: ChannelReader;
  readonly #latencyPs: Picoseconds;
  readonly #aheadPs: Picoseconds;
  readonly #serializer: Serializer;
  readonly #training: LinkTraining;
  readonly #spaceEvent: number;
  #spaceDuePs = NEVER;
  readonly #held = new HeldBack<HeldFrame>();
  #unsent = { frames: 0, bytes: 0 };
  /** A PAUSE frame may be due, and the link was busy. */
  #controlWaits = false;
  readonly #heldEvent: number;
  /** Earliest instant at which a frame in {@link #held} is due. */
  #heldDuePs = NEVER;
  /** Whether frames may leave: the station has opened its port. Otherwise they are discarded. */
  isOpen = true;
  #isLinkUp = false;
  #changedPs = -1;
  /** Bytes of a slot of the receive fifo, those of the frame in each, and the slots that are free. */
  readonly #slotBytes: number;
  readonly #frameBytes: Int32Array;
  readonly #sentAgain: Uint8Array;
  readonly #freeSlots: number[];
  readonly #isHeldElsewhere: boolean;
  readonly #sentArrival: PacketArrival;
  readonly #copier = new BlockCopier();
  #ports!: EthernetPortPorts;

  /** Connects itself to `lp` as reader of `reader` and writer of `writer`. Starts disabled. */
  constructor(options: EthernetPortOptions) {
    const { lp, config, reader, writer } = options;
    this.config = config;
    this.frameBytesMax = ethernetFrameBytesMax(config);
    this.faults = new EthernetFaults(config, options.seed, options.stream ?? lp.name);
    this.flowControl = new FlowControl(lp, config, options.controlMac);
    const wantedSlots = this.flowControl.isThere ? pausingFifoFrames(config) : config.receiveFifoFrames;
    const slotCount = options.slotCount ?? wantedSlots;
    this.slotCount = slotCount;
    this.#isHeldElsewhere = options.slotCount !== undefined;
    this.#sentArrival = options.sentArrival ?? 'tail';
    this.#slotBytes = Math.ceil(this.frameBytesMax / COPY_ALIGNMENT) * COPY_ALIGNMENT;
    this.rxBytes = new Uint8Array(slotCount * this.#slotBytes);
    this.#frameBytes = new Int32Array(slotCount);
    this.#sentAgain = new Uint8Array(slotCount);
    this.#freeSlots = Array.from({ length: slotCount }, (_, slot) => slot);
    this.#lp = lp;
    this.#writer = writer;
    this.#reader = reader;
    this.#latencyPs = ethernetLatencyPs(config);
    this.#serializer = new Serializer(ethernetByteTime(config));
    this.#aheadPs = this.#serializer.durationPs(config.transmitAheadBytes);
    this.#training = new LinkTraining(lp, config);
    this.blocks = { training: this.#training, flowControl: this.flowControl };
    this.#spaceEvent = lp.queue.addHandler(() => this.#spaceDue());
    this.#heldEvent = lp.queue.addHandler(() => this.#catchUp());
    lp.addInbound(reader, this.#latencyPs, this);
    lp.addOutbound(writer);
    lp.addTimeKeeper(this);
  }

  connect(ports: EthernetPortPorts): void {
    this.#ports = ports;
    connectBlocks(this.blocks, ethernetPortWires({ ...this.blocks, port: this }));
  }

  /** Its state, without the channels' contents and statistics. */
  inspect(): BlockState {
    return {
      physicalState: this.#training.physicalState,
      isLinkUp: this.#isLinkUp,
      heldFrames: this.heldFrames,
      isWaitedFor: this.#spaceDuePs !== NEVER,
      heldBackFrames: this.#held.count,
      ...(this.flowControl.isThere ? { flowControl: this.flowControl.inspect() } : {}),
    };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#serializer.rebase(ps);
    this.flowControl.rebase(ps);
    this.#spaceDuePs -= ps;
    this.#held.rebase(ps);
    this.#heldDuePs -= ps;
    this.#changedPs -= ps;
  }

  // ---- link state ----

  /** Enables or disables this end: the link comes up some time after both are enabled. */
  setEnabled(isEnabled: boolean): void {
    this.#training.setEnabled(isEnabled);
  }

  get isEnabled(): boolean {
    return this.#training.isEnabled;
  }

  /** True if frames sent now are put on the wire. */
  get isUp(): boolean {
    return this.#isLinkUp === this.#lp.nowPs > this.#changedPs;
  }

  // ---- transmit ----

  /**
   * Whether a frame that will be formed by `formedPs` can be sent now. After a refusal, the sender is called when it may ask again.
   * @param priority of the frame; left out for a sender that does not know it: then a pause of any priority stops it
   */
  canTransmit(formedPs: Picoseconds = this.#lp.nowPs, priority = ANY_PRIORITY): boolean {
    const nowPs = this.#lp.nowPs;
    let readyPs = this.readyPs(formedPs - nowPs);
    const { flowControl } = this;
    const { pausedUntilPs, priorities } = flowControl;
    if (nowPs < pausedUntilPs) {
      flowControl.waits();
      // At the repeated request, it waits for the link if that is still busy.
      this.#wakeSenderBy(pausedUntilPs);
      return false;
    }
    flowControl.goesOn();
    if (priorities.isHeeding) {
      const untilPs = priorities.pausedUntilPs(priority);
      if (nowPs < untilPs) {
        priorities.waits();
        this.#wakeSenderBy(untilPs);
        return false;
      }
      priorities.goesOn();
    }
    if (readyPs <= nowPs && this.#waitsForLink) {
      // Frames that form while the link is busy would otherwise overtake it indefinitely.
      this.#goFirst();
      readyPs = this.readyPs(formedPs - nowPs);
    }
    if (readyPs <= nowPs) return true;
    this.#wakeSenderBy(readyPs);
    return false;
  }

  /** Whether the other end has paused this one. */
  get isPaused(): boolean {
    return this.flowControl.isPaused;
  }

  /** When at most the configured number of bytes waits for the link, or the number that leaves while a frame is formed; without pauses. */
  readyPs(formingPs: Picoseconds): Picoseconds {
    const aheadPs = this.#aheadPs;
    return this.freePs - (formingPs > aheadPs ? formingPs : aheadPs);
  }

  /** Instant by which all accepted frames have left. */
  get freePs(): Picoseconds {
    this.#catchUp();
    return this.#serializer.freePs;
  }

  /**
   * Sends the frame of `lengthBytes` (header and payload, without FCS) at `source[sourceOffset]`, padded with zeros to 60
   * bytes, when the link is free, and not before `fromPs`.
   * @param isSentAgain for observers of the cable
   * @param isWrong whether it leaves with the wrong frame check sequence with which it came
   * @throws InvariantError for a frame without a whole header or beyond the MTU: the MAC checks this first
   */
  send(
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    fromPs = this.#lp.nowPs,
    isSentAgain = false,
    isWrong = false,
  ): void {
    if (lengthBytes < ETHERNET_HEADER_BYTES || lengthBytes > this.frameBytesMax) {
      throw new InvariantError(
        'bytes of a frame',
        lengthBytes,
        `${ETHERNET_HEADER_BYTES} to ${this.frameBytesMax}`,
      );
    }
    const { transmitted, faults } = this;
    this.#catchUp();
    if (!this.isUp || !this.isOpen) {
      transmitted.discardedFrames++;
      return;
    }
    const wireBytes = wireBytesOf(lengthBytes);
    transmitted.frames++;
    transmitted.bytes += wireBytes;
    transmitted.padBytes += wireBytes - ETHERNET_FCS_BYTES - lengthBytes;
    const rules = faults.rulesOn(source, sourceOffset, lengthBytes);
    const chanced = this.#outcomeOf(wireBytes, rules, fromPs);
    const outcome = isWrong && chanced === OUTCOME_ARRIVES ? OUTCOME_STILL_WRONG : chanced;
    if (rules === noRules && this.#heldDuePs === NEVER)
      this.#put(source, sourceOffset, lengthBytes, outcome, fromPs, isSentAgain);
    else {
      const bytes = source.slice(sourceOffset, sourceOffset + lengthBytes);
      this.#putInDisorder(bytes, outcome, rules, fromPs, isSentAgain, isWrong);
    }
  }

  // ---- receive ----

  /** Offset in {@link rxBytes} of the header of the frame in a slot. */
  frameStart(slot: number): number {
    return slot * this.#slotBytes;
  }

  /** Bytes of a received frame, including padding, without FCS. */
  frameBytes(slot: number): number {
    return this.#frameBytes[slot]!;
  }

  /** Whether the sender of a received frame says that it had sent it before. */
  isSentAgain(slot: number): boolean {
    return this.#sentAgain[slot] === 1;
  }

  /** The frame was processed: its slot is free. */
  consume(slot: number): void {
    this.#freeSlots.push(slot);
    if (!this.#isHeldElsewhere) this.flowControl.fifoHolds(this.heldFrames);
  }

  // ---- reports ----

  /** Delivered frames that were not released yet. */
  get heldFrames(): number {
    return this.#frameBytes.length - this.#freeSlots.length;
  }

  /** Picoseconds for which this end has occupied the link, including gaps. */
  get busyPs(): Picoseconds {
    return this.#serializer.busyPs;
  }

  /** Frames that count as transmitted but a fault holds back; copies do not count yet. */
  get heldBack(): { readonly frames: number; readonly bytes: number } {
    const held = this.#held.all().filter(({ isCopy }) => !isCopy);
    return {
      frames: held.length,
      bytes: held.reduce((sum, { bytes }) => sum + wireBytesOf(bytes.length), 0),
    };
  }

  /** Frames that count as transmitted but were never on the link: held back by a fault, still or until the link went down. */
  get unsent(): { readonly frames: number; readonly bytes: number } {
    const held = this.heldBack;
    return { frames: this.#unsent.frames + held.frames, bytes: this.#unsent.bytes + held.bytes };
  }

  // ---- inside ----

  /** Determines and counts the fate of a frame; a late frame holds the link before it. */
  #outcomeOf(wireBytes: number, rules: ConcernedRules, fromPs: Picoseconds): number {
    const { transmitted } = this;
    const late = rules.of('late');
    if (late !== undefined) {
      late.fired();
      transmitted.delayedFrames++;
      this.#serializer.hold(fromPs, late.effect.delayPs);
    }
    let outcome = this.faults.outcomeByChance();
    const lost = rules.of('lost');
    if (lost !== undefined) {
      lost.fired();
      outcome = OUTCOME_LOST;
    }
    if (outcome === OUTCOME_LOST) {
      transmitted.lostFrames++;
      transmitted.lostBytes += wireBytes;
      return outcome;
    }
    const corrupted = rules.of('corrupted');
    if (corrupted !== undefined) {
      corrupted.fired();
      if (!corrupted.effect.isInside) outcome = OUTCOME_CORRUPTED;
    }
    if (outcome !== OUTCOME_ARRIVES || corrupted !== undefined) transmitted.corruptedFrames++;
    return outcome;
  }

  /**
   * Handles a frame to which rules apply, or while others are held back. The frame owns its bytes. It passes no PAUSE frame:
   * the frames that the PAUSE would release may be stopped.
   */
  #putInDisorder(
    bytes: Uint8Array,
    outcome: number,
    rules: ConcernedRules,
    fromPs: Picoseconds,
    isSentAgain: boolean,
    isWrong = false,
    isPassing = true,
  ): void {
    const { passed, canCopy } = this.#held;
    const { rearranged } = this;
    const congested = outcome === OUTCOME_LOST ? undefined : rules.of('congested');
    if (congested !== undefined) {
      congested.fired();
      markCongestion(bytes, 0, bytes.length);
    }
    const copy = canCopy ? rules.of('duplicated') : undefined;
    const whole = copy === undefined ? bytes : bytes.slice();
    const corrupted = outcome === OUTCOME_LOST ? undefined : rules.of('corrupted');
    if (corrupted?.effect.isInside === true) damageFrame(bytes, 0, bytes.length, corrupted.effect.place);
    const reordering = outcome === OUTCOME_LOST || passed !== undefined ? undefined : rules.of('reordered');
    const markNote = congested === undefined ? '' : MARKED_NOTE;
    const damageNote = corrupted?.effect.isInside === true ? insideNote : '';
    const remark = joinedNotes(lateNote(rules.of('late')?.effect.delayPs ?? 0), markNote, damageNote);
    if (reordering === undefined) {
      const note = joinedNotes(sentNotes[outcome] ?? '', remark);
      this.#put(bytes, 0, bytes.length, outcome, fromPs, isSentAgain, note);
    } else {
      const { passes, delayPs } = reordering.effect;
      const duePs = fromPs + delayPs;
      rearranged.heldBackFrames++;
      this.#hold({ bytes, isSentAgain, outcome, isCopy: false, passes, passesLeft: passes, remark, duePs });
      reordering.fired();
    }
    if (copy !== undefined) {
      const duePs = fromPs + copy.effect.delayPs;
      const outcomeOfCopy = isWrong ? OUTCOME_STILL_WRONG : OUTCOME_ARRIVES;
      this.#hold({
        bytes: whole,
        isSentAgain,
        outcome: outcomeOfCopy,
        isCopy: true,
        passes: NEVER,
        passesLeft: NEVER,
        remark: markNote,
        duePs,
      });
      copy.fired();
    }
    if (isPassing && passed !== undefined && --passed.passesLeft === 0) this.#letGo(passed, fromPs);
  }

  /** A PAUSE frame may be due: it leaves as soon as the link has little reserved. */
  controlDue(): void {
    const { flowControl } = this;
    this.#controlWaits = false;
    if (!this.isUp) return flowControl.postpone(NEVER);
    const readyPs = this.#serializer.freePs - this.#aheadPs;
    if (readyPs <= this.#lp.nowPs) return this.#sendControl();
    this.#controlWaits = true;
    flowControl.postpone(readyPs);
  }

  /** Sends the due PAUSE frame, if any, after all reserved frames. */
  #sendControl(): void {
    const { nowPs } = this.#lp;
    const frame = this.flowControl.nextFrame();
    if (frame === undefined) return;
    const rules = this.faults.rulesOnPause();
    const outcome = this.#outcomeOf(wireBytesOf(frame.length), rules, nowPs);
    if (rules === noRules) this.#put(frame, 0, frame.length, outcome, nowPs, false);
    else this.#putInDisorder(frame, outcome, rules, nowPs, false, false, false);
  }

  /** Whether a PAUSE frame, or a held-back one, is due and waits only for the link. */
  get #waitsForLink(): boolean {
    return this.#controlWaits || this.#held.firstDue(this.#lp.nowPs) !== undefined;
  }

  /** Sends these before a frame that may be sent now; the link is up, and this end is not paused. */
  #goFirst(): void {
    const { nowPs } = this.#lp;
    if (this.#controlWaits) {
      this.#controlWaits = false;
      this.#sendControl();
    }
    for (let frame = this.#held.firstDue(nowPs); frame !== undefined; frame = this.#held.firstDue(nowPs))
      this.#letGo(frame, nowPs);
  }

  /** Notes that the other end lets this one resume from `fromPs` on. */
  pauseEnds(fromPs: Picoseconds): void {
    if (this.#spaceDuePs !== NEVER) this.#wakeSenderBy(fromPs);
    if (this.#held.count > 0) this.#wakeHeldBy(fromPs);
  }

  #hold(frame: HeldFrame): void {
    this.#held.hold(frame);
    this.#wakeHeldBy(frame.duePs);
  }

  #wakeHeldBy(duePs: Picoseconds): void {
    if (duePs >= this.#heldDuePs) return;
    this.#heldDuePs = duePs;
    this.#lp.queue.schedule(duePs, this.#heldEvent);
  }

  #wakeSenderBy(readyPs: Picoseconds): void {
    if (readyPs >= this.#spaceDuePs) return;
    this.#spaceDuePs = readyPs;
    this.#lp.queue.schedule(readyPs, this.#spaceEvent);
  }

  /**
   * A due PAUSE frame uses the link before anything else of this instant, followed by due held-back frames, which a pause
   * delays; both as soon as the link has little reserved.
   */
  #catchUp(): void {
    const { nowPs } = this.#lp;
    if (nowPs >= this.flowControl.duePs) this.controlDue();
    if (nowPs < this.#heldDuePs) return;
    this.#heldDuePs = NEVER;
    if (!this.isUp) return this.#loseHeld();
    const held = this.#held;
    if (this.isPaused) return this.#wakeHeldBy(this.flowControl.anyPausedUntilPs);
    for (let frame = held.firstDue(nowPs); frame !== undefined; frame = held.firstDue(nowPs)) {
      const readyPs = this.#serializer.freePs - this.#aheadPs;
      if (readyPs > nowPs) return this.#wakeHeldBy(readyPs);
      this.#letGo(frame, nowPs);
    }
    if (held.count > 0) this.#wakeHeldBy(held.duePs);
  }

  #letGo(frame: HeldFrame, fromPs: Picoseconds): void {
    const { bytes, outcome, isCopy, isSentAgain } = frame;
    this.#held.release(frame);
    if (this.#held.count === 0) this.#heldDuePs = NEVER;
    if (isCopy) {
      this.rearranged.copiedFrames++;
      this.rearranged.copiedBytes += wireBytesOf(bytes.length);
    }
    const passedBy = isCopy ? copyNote : overtakenNote(frame.passes - Math.max(0, frame.passesLeft));
    const note = joinedNotes(passedBy, isCopy ? '' : (sentNotes[outcome] ?? ''), frame.remark);
    this.#put(bytes, 0, bytes.length, outcome, fromPs, isSentAgain, note);
  }

  /** The link is down: held-back frames and copies are not sent any more. */
  #loseHeld(): void {
    const { transmitted } = this;
    const { frames, bytes } = this.heldBack;
    transmitted.lostFrames += frames;
    transmitted.lostBytes += bytes;
    this.#unsent = { frames: this.#unsent.frames + frames, bytes: this.#unsent.bytes + bytes };
    this.#held.clear();
  }

  /** Puts a frame on the link. */
  #put(
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    outcome: number,
    fromPs: Picoseconds,
    isSentAgain: boolean,
    note = sentNotes[outcome],
  ): void {
    const { config } = this;
    const frameBytes = Math.max(lengthBytes, ETHERNET_FRAME_MIN_BYTES);
    const startPs = Math.max(fromPs, this.#serializer.freePs);
    const endPs = this.#serializer.occupy(fromPs, config.preambleBytes + frameBytes + ETHERNET_FCS_BYTES);
    this.#serializer.occupy(endPs, config.interFrameGapBytes);
    if (this.tap !== undefined)
      this.tap.packetPassed('outbound', endPs, source, sourceOffset, lengthBytes, note ?? '');
    const kind = outcome === OUTCOME_LOST ? LOST_FRAME : FRAME;
    // MAC control frames (31.4.1.3), PAUSE and PFC, take effect when they are complete.
    const isWhole = this.#sentArrival === 'tail' || isControlFrame(source, sourceOffset);
    const arrivalPs = isWhole ? endPs : startPs;
    const offset = this.#writer.append(arrivalPs + this.#latencyPs, kind, frameBytes);
    const { words, bytes } = this.#writer;
    words[(offset >> 2) + WORD_FRAME_BYTES] = frameBytes;
    if (outcome === OUTCOME_STILL_WRONG) this.relayed.sent++;
    const isCorrupted = outcome === OUTCOME_CORRUPTED || outcome === OUTCOME_STILL_WRONG;
    words[(offset >> 2) + WORD_IS_CORRUPTED] = isCorrupted ? 1 : 0;
    words[(offset >> 2) + WORD_TAIL_DELAY_PS] = endPs - arrivalPs;
    words[(offset >> 2) + WORD_IS_SENT_AGAIN] = isSentAgain ? 1 : 0;
    const start = offset + RECORD_HEADER_BYTES;
    for (let at = 0; at < lengthBytes; at++) bytes[start + at] = source[sourceOffset + at]!;
    if (frameBytes > lengthBytes) bytes.fill(0, start + lengthBytes, start + frameBytes);
  }

  /** Called by a record, at its time. */
  deliver(offset: number): void {
    const kind = this.#reader.kindAt(offset);
    if (kind === LOST_FRAME) return this.#reader.release(offset);
    if (kind === LINK_TRAINING) {
      const step = this.#reader.words[(offset >> 2) + WORD_TRAINING_STEP]!;
      this.#reader.release(offset);
      this.#training.stepReceived(step);
      return;
    }
    const { received } = this;
    const { words } = this.#reader;
    const frameBytes = words[(offset >> 2) + WORD_FRAME_BYTES]!;
    const isCorrupted = words[(offset >> 2) + WORD_IS_CORRUPTED] === 1;
    const tailDelayPs = words[(offset >> 2) + WORD_TAIL_DELAY_PS]!;
    const wireBytes = frameBytes + ETHERNET_FCS_BYTES;
    if (this.tap !== undefined) this.#showArrival(this.tap, offset, frameBytes, isCorrupted);
    if (!this.isUp) {
      received.linkDownDrops++;
      received.droppedBytes += wireBytes;
    } else if (isCorrupted && tailDelayPs === 0) {
      received.corruptedFrames++;
      received.corruptedBytes += wireBytes;
    } else if (this.flowControl.takes(this.#reader.bytes, offset + RECORD_HEADER_BYTES)) {
      this.flowControl.receive(this.#reader.bytes, offset + RECORD_HEADER_BYTES, frameBytes);
    } else if (this.#isFull) {
      received.fifoDrops++;
      received.droppedBytes += wireBytes;
    } else {
      received.deliveredFrames++;
      received.deliveredBytes += wireBytes;
      if (isCorrupted) this.relayed.received++;
      this.#receive(offset, frameBytes, tailDelayPs, isCorrupted);
    }
    this.#reader.release(offset);
  }

  #showArrival(tap: WireTap, offset: number, frameBytes: number, isCorrupted: boolean): void {
    const first = offset + RECORD_HEADER_BYTES;
    const { bytes, words } = this.#reader;
    const tailDelayPs = words[(offset >> 2) + WORD_TAIL_DELAY_PS]!;
    const damage = tailDelayPs === 0 ? corruptedNote : corruptedHeadNote;
    const fate = isCorrupted ? damage : this.#fateOf(bytes, first, frameBytes);
    const atPs = this.#lp.nowPs + tailDelayPs;
    tap.packetPassed('inbound', atPs, bytes, first, frameBytes, this.isUp ? fate : linkDownNote);
  }

  /** Fate of an undamaged received frame that is neither delivered nor obeyed. */
  #fateOf(bytes: Uint8Array, first: number, frameBytes: number): string {
    const { flowControl } = this;
    if (!flowControl.takes(bytes, first)) return this.#isFull ? fullNote : '';
    return flowControl.isPause(bytes, first, frameBytes) ? '' : strangeControlNote;
  }

  /** Whether the receive fifo has no free slot. */
  get #isFull(): boolean {
    return this.heldFrames >= (this.flowControl.isSending ? this.slotCount : this.config.receiveFifoFrames);
  }

  /** Moves the frame of the record at `offset` into the receive fifo. */
  #receive(offset: number, frameBytes: number, tailDelayPs: Picoseconds, isCorrupted: boolean): void {
    const slot = this.#freeSlots.pop()!;
    if (!this.#isHeldElsewhere) this.flowControl.fifoHolds(this.heldFrames);
    this.#frameBytes[slot] = frameBytes;
    this.#sentAgain[slot] = this.#reader.words[(offset >> 2) + WORD_IS_SENT_AGAIN]!;
    const from = offset + RECORD_HEADER_BYTES;
    this.#copier.copy(this.rxBytes, this.frameStart(slot), this.#reader.bytes, from, frameBytes);
    this.#ports.receiver.frameArrived(slot, tailDelayPs, isCorrupted);
  }

  #spaceDue(): void {
    if (this.#lp.nowPs < this.#spaceDuePs) return;
    this.#spaceDuePs = NEVER;
    this.#ports.sender.spaceFreed();
  }

  /** A step of the link's training, after all reserved frames. */
  sendStep(step: number): void {
    const atPs = Math.max(this.#lp.nowPs, this.#serializer.freePs) + this.#latencyPs;
    const offset = this.#writer.append(atPs, LINK_TRAINING, 0);
    this.#writer.words[(offset >> 2) + WORD_TRAINING_STEP] = step;
  }

  /** The training has brought the link up, or down. */
  linkChanged(isUp: boolean): void {
    this.#isLinkUp = isUp;
    this.#changedPs = this.#lp.nowPs;
    this.flowControl.linkChanged();
    if (!isUp && this.#held.count > 0) this.#wakeHeldBy(this.#lp.nowPs + 1);
    this.#ports.link.linkChanged(isUp, this.#lp.nowPs);
  }
}

/** Bytes of a frame on the wire, FCS included. */
const wireBytesOf = (lengthBytes: number): number =>
  Math.max(lengthBytes, ETHERNET_FRAME_MIN_BYTES) + ETHERNET_FCS_BYTES;
