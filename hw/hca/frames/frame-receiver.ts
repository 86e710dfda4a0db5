/**
 * The receiver of an Ethernet port: takes frames from the wire port one at a time, in order, finds their ring, and
 * writes them into its next buffer. Frames without a ring or buffer are dropped and counted: the sender gets no answer,
 * and no PAUSE frame delays it until a buffer is posted.
 *
 *   wire port ──> fifo ──> steering ─QPN─> [table of rings] ──> ring ──> receive WQE ──> frame to memory ──> completion
 *
 * In order and blocking: data that are not on chip stop the receiver, and frames that arrive meanwhile wait in the wire
 * port's buffer, while it has room. The stage resumes at the same step, like the datagram receiver. Sources: interface
 * sheet 5.1 (VLAN), 6.4, 6.6.
 */
import { CqeSyndrome, EventType, QpState, ReceiveOpcode } from '../../../abi/index.ts';
import { type Cycles, viewOf } from '../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
} from '../../../sim/index.ts';
import { crc32, ETHERNET_FCS_BYTES } from '../../../wire/index.ts';
import { ABSENT, DONE, FULL, NONE_POSTED, REFUSED, UNREADABLE, WAIT } from '../answers.ts';
import type { CompletionWriter } from '../completion/index.ts';
import type { CostAttribution } from '../costs/index.ts';
import { type ContextCache, type ContextPort, type ContextUser, PORT_RECEIVER } from '../memory/index.ts';
import { ETHERNET_OPCODE_BASE, type QpSlot, type QpTable, type QueuePair } from '../objects/index.ts';
import { receiverStalls, STALL_COMPLETION, STALL_CONTEXT } from '../packets/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { EthernetAttachment, FrameDropReason } from '../port/index.ts';
import type { PayloadWriter, ReceiveScatter } from '../receive-queue/index.ts';
import { packetPlacesOf, TAG_BYTES, TAG_PLACE, tagOf } from './frame-headers.ts';
import type { ReceiveTurns } from './index.ts';
import { FrameChecksums } from './receive-checksums.ts';
import { RingChoice } from './ring-choice.ts';

const { ERR, RTR } = QpState;
const VLAN_ID_MASK = 0xfff;
const NO_TAG = -1;
/** Bit of a completion that marks its low bits as the frame's tag. */
const HAS_TAG = 1 << 16;

/** Twice the requests of the payload writer that may wait. */
const FCS_PLACES = 32;
const STEP_FIND = 0;
const STEP_TAKE = 1;
const STEP_PLACE = 2;
const STEP_FINISH = 3;
/** A step is done, and the next one follows. */
const GO_ON = -2;

export interface FrameReceiverPorts {
  readonly writer: PayloadWriter;
  readonly scatter: ReceiveScatter;
  readonly completions: CompletionWriter;
  readonly errors: {
    /** The QP goes to error, with an asynchronous event; event type 0: none. */
    refused(qp: QpSlot, eventType: number, cycle: Cycles): void;
  };
}

/** Names of frames in the buffers of a port that also carries packets; on other ports the slot number is the name. */
interface FrameNames {
  frameName(slot: number): number;
}

/** Parts of the device that {@link FrameReceiver} uses. */
export interface FrameReceiverSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: Pick<
    HcaConfig,
    'receiveLatencyCycles' | 'receiveBytesPerCycle' | 'receivePacketCycles' | 'receiveHeadCycles'
  >;
  readonly address: { readonly isActive: boolean };
  readonly ethernet: EthernetAttachment | undefined;
  readonly qps: QpTable;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly frameNames: FrameNames | undefined;
  readonly receiveTurns: ReceiveTurns | undefined;
  readonly costs: CostAttribution | undefined;
}

export class FrameReceiver {
  readonly account: BlockAccount;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #address: FrameReceiverSetup['address'];
  readonly #qps: QpTable;
  readonly #names: FrameNames | undefined;
  readonly #costs: CostAttribution | undefined;
  /** Undefined on a port of InfiniBand, which receives no frames. */
  readonly #ethernet: EthernetAttachment | undefined;
  readonly #contexts: ContextPort;
  readonly #arrived: Fifo;
  readonly #stage: number;
  readonly #latencyCycles: number;
  readonly #bytesPerCycle: number;
  readonly #packetCycles: number;
  readonly #headCycles: number;
  readonly #rings = new RingChoice();
  /** Undefined if completions report no checksums. */
  readonly #checksums: FrameChecksums | undefined;
  /** Arbitration with the packet receiver, with RoCE: see ReceiveTurns. */
  readonly #turns: ReceiveTurns | undefined;
  /** Frames that a ring has received. */
  completedCount = 0;
  #ports!: FrameReceiverPorts;
  /**
   * State of the frame being worked on: its step, ring, tag for the completion and whether the tag is removed, bytes
   * written, error.
   */
  #step = STEP_FIND;
  #active: QueuePair | undefined;
  #tag = NO_TAG;
  #isTagStripped = false;
  #hash = 0;
  #placed = 0;
  #syndrome = 0;
  /** FCS of the last frames that kept theirs, more than the write engine can hold requests of; and the place of the last. */
  readonly #fcsBytes = new Uint8Array(FCS_PLACES * ETHERNET_FCS_BYTES);
  readonly #fcsView = viewOf(this.#fcsBytes);
  #fcsPlace = 0;

  /** @param account that of the receiver of packets, where both are one pipeline */
  constructor(setup: FrameReceiverSetup, account = new BlockAccount('frameReceiver', receiverStalls)) {
    const { config, ethernet } = setup;
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#address = setup.address;
    this.#qps = setup.qps;
    this.#names = setup.frameNames;
    this.#costs = setup.costs;
    this.account = account;
    this.#turns = setup.receiveTurns;
    this.#ethernet = ethernet;
    const form = ethernet?.side.receiveChecksums ?? 'none';
    this.#checksums = form === 'none' ? undefined : new FrameChecksums(form);
    this.#contexts = setup.qpcCache.port(PORT_RECEIVER);
    this.#arrived = new Fifo({
      name: 'frames from the cable',
      capacity: ethernet?.port.slotCount ?? 1,
      whenFull: 'never: the wire port drops what it has no buffer for',
    });
    this.#latencyCycles = config.receiveLatencyCycles;
    this.#bytesPerCycle = config.receiveBytesPerCycle;
    this.#packetCycles = config.receivePacketCycles;
    this.#headCycles = config.receiveHeadCycles;
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: FrameReceiverPorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Room for a completion became free. */
  completionSpace(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_COMPLETION)) this.wake(cycle + 1);
  }

  isServing(qp: QpSlot): boolean {
    return this.#active?.slot === qp;
  }

  /** The wire port has a frame in this slot, whole. */
  frameArrived(slot: number): void {
    const { port, side } = this.#ethernet!;
    const bytes = port.frameBytes(slot);
    const at = port.frameStart(slot);
    const tag = tagOf(port.rxBytes, at);
    const { longestBytes } = side.steering;
    side.statistics.received.count(port.rxBytes, at, tag, bytes + ETHERNET_FCS_BYTES, longestBytes);
    const cycle =
      this.#domain.clock.cycleAfter(this.#lp.nowPs) + this.#latencyCycles + this.#moveCycles(bytes);
    this.#arrived.push(slot, cycle);
    this.#domain.wake(this.#stage, cycle);
  }

  /** Frames that have arrived and are not finished. */
  get heldCount(): number {
    return this.#arrived.count;
  }

  get fifos(): readonly Fifo[] {
    return [this.#arrived];
  }

  reset(): void {
    while (!this.#arrived.isEmpty) {
      this.#drop('portClosed');
      this.#finish();
    }
    this.#active = undefined;
    this.#step = STEP_FIND;
  }

  inspect(): BlockState {
    return { frames: this.#arrived.values, step: this.#step, active: this.#active?.slot ?? 'none' };
  }

  /** Returns the cycles that this number of bytes takes through the data path. */
  #moveCycles(bytes: number): number {
    return Math.ceil(bytes / this.#bytesPerCycle);
  }

  #run(cycle: Cycles): void {
    const ethernet = this.#ethernet;
    if (ethernet === undefined) return;
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#turns?.isOthers(this)) return this.#await(this.#turns, cycle);
    if (this.#arrived.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#arrived.isEmpty) this.wake(this.#arrived.headCycle);
      return;
    }
    this.#turns?.take(this);
    const bytes = this.#process(ethernet, this.#arrived.head, cycle);
    if (bytes === WAIT) return;
    if (this.#active !== undefined) this.#contexts.used();
    this.#active = undefined;
    this.#step = STEP_FIND;
    this.#costs?.rests(PORT_RECEIVER);
    this.#finish();
    const passCycles = bytes === 0 ? 0 : this.#headCycles + this.#moveCycles(bytes);
    const busyCycles = passCycles > this.#packetCycles ? passCycles : this.#packetCycles;
    this.account.serve(cycle, busyCycles);
    this.#turns?.pass(cycle + busyCycles);
    if (!this.#arrived.isEmpty) this.wake(Math.max(cycle + busyCycles, this.#arrived.headCycle));
  }

  /** The other receiver is active: requests the next turn if a frame is visible. */
  #await(turns: ReceiveTurns, cycle: Cycles): void {
    if (this.#arrived.headCycle <= cycle) turns.awaitNext(this);
    else if (!this.#arrived.isEmpty) this.wake(this.#arrived.headCycle);
  }

  /** Finishes the oldest frame: its buffer is freed when all of it has left. */
  #finish(): void {
    const slot = this.#arrived.pop();
    this.#ports.writer.finish(this.#names === undefined ? slot : this.#names.frameName(slot));
  }

  /** Works on the frame in `slot`. Returns the bytes written, 0 when it was dropped, or WAIT. */
  #process(ethernet: EthernetAttachment, slot: number, cycle: Cycles): number {
    if (this.#step === STEP_FIND) {
      const found = this.#find(ethernet, slot, cycle);
      if (found !== GO_ON) return found;
      this.#step = STEP_TAKE;
    }
    const pair = this.#active!;
    if (!takesFrames(pair)) {
      // The ring has failed since, or no longer exists.
      this.#active = undefined;
      return this.#drop('qpState');
    }
    if (this.#step === STEP_TAKE) {
      const taken = this.#take(pair, cycle);
      if (taken !== GO_ON) return taken;
      this.#placed = 0;
      this.#syndrome = 0;
      if (pair.keepsFcs === 1) this.#computeFcs(ethernet, slot);
      this.#step = STEP_PLACE;
    }
    if (this.#step === STEP_PLACE) {
      const placed = this.#place(ethernet, slot, pair, cycle);
      if (placed === WAIT) return WAIT;
      if (placed === ABSENT) return this.#drop('pageFault');
      this.#step = STEP_FINISH;
    }
    const { completions } = this.#ports;
    if (completions.isFull) {
      this.account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    this.#complete(ethernet, slot, pair, cycle);
    return ethernet.port.frameBytes(slot);
  }

  /** Finds the frame's ring, and has its context on chip. */
  #find({ port, side }: EthernetAttachment, slot: number, cycle: Cycles): number {
    const { rxBytes } = port;
    const { steering } = side;
    const at = port.frameStart(slot);
    const bytes = port.frameBytes(slot);
    if (this.#active === undefined) {
      if (!this.#address.isActive) return this.#drop('portClosed');
      const tag = tagOf(rxBytes, at);
      const vlanId = tag === NO_TAG ? NO_TAG : tag & VLAN_ID_MASK;
      const qpn = steering.qpnOf(rxBytes, at, bytes + ETHERNET_FCS_BYTES, vlanId);
      if (qpn === -1) {
        steering.dropUnsteered();
        return 0;
      }
      const pair = this.#ringOf(qpn, rxBytes, at, bytes);
      if (typeof pair === 'string') return this.#drop(pair);
      this.#active = pair;
    }
    const pair = this.#active;
    if (!this.#contexts.access(pair.slot, true)) {
      this.account.stall(cycle, STALL_CONTEXT);
      return WAIT;
    }
    const tag = tagOf(rxBytes, at, true);
    this.#isTagStripped = pair.keepsTag === 0 && tag !== NO_TAG;
    // Software assumes that the checksum does not cover a tag that is kept.
    this.#tag = this.#isTagStripped || this.#checksums !== undefined ? tag : NO_TAG;
    return GO_ON;
  }

  /** Returns the ring of a QPN, or the ring that its table selects. */
  #ringOf(qpn: number, bytes: Uint8Array, at: number, frameBytes: number): QueuePair | FrameDropReason {
    let pair = this.#pairOf(qpn);
    this.#hash = 0;
    if (typeof pair === 'string') return pair;
    if (pair.isIndirect === 1) {
      this.#rings.choose(
        this.#qps.view,
        this.#qps.offsetOf(pair.slot),
        bytes,
        packetPlacesOf(bytes, at, frameBytes),
      );
      this.#hash = this.#rings.hash;
      pair = this.#pairOf(this.#rings.qpn);
    }
    return pair;
  }

  #pairOf(qpn: number): QueuePair | FrameDropReason {
    const slot = this.#qps.slotOf(qpn);
    if (slot === -1) return 'unknownQp';
    const pair = this.#qps.rows[slot]!;
    return takesFrames(pair) ? pair : 'qpState';
  }

  #take(pair: QueuePair, cycle: Cycles): number {
    const { scatter, errors } = this.#ports;
    if (pair.hasReceiveWqe === 1) {
      // A receive WQE that a frame left because a page was absent is used again.
      scatter.rewind(pair.slot);
      return GO_ON;
    }
    const taken = scatter.take(pair.slot, this.#arrived.headCycle, cycle);
    if (taken === WAIT) return WAIT;
    if (taken === DONE) return GO_ON;
    if (taken === UNREADABLE) errors.refused(pair.slot, EventType.WQ_CATAS_ERROR, cycle);
    return this.#drop(taken === NONE_POSTED ? 'noReceiveWqe' : 'qpState');
  }

  /**
   * Computes the FCS of a frame as received, with its tag: the cable only carries a flag that tells that it is right.
   */
  #computeFcs({ port }: EthernetAttachment, slot: number): void {
    const at = port.frameStart(slot);
    this.#fcsPlace = (this.#fcsPlace + 1) % FCS_PLACES;
    const fcs = crc32.of(port.rxBytes, at, at + port.frameBytes(slot));
    this.#fcsView.setUint32(this.#fcsPlace * ETHERNET_FCS_BYTES, fcs, true);
  }

  /** Writes the frame, without a removed tag, and with its FCS if kept. */
  #place(
    { port }: EthernetAttachment,
    slot: number,
    { slot: qp, keepsFcs }: QueuePair,
    cycle: Cycles,
  ): typeof DONE | typeof WAIT | typeof ABSENT {
    const { scatter } = this.#ports;
    const fcsBytes = keepsFcs * ETHERNET_FCS_BYTES;
    const hole = this.#isTagStripped ? TAG_BYTES : 0;
    const total = port.frameBytes(slot) - hole;
    const start = port.frameStart(slot);
    while (this.#placed < total + fcsBytes && this.#syndrome === 0) {
      const isFcs = this.#placed >= total;
      const isBeforeTag = hole > 0 && this.#placed < TAG_PLACE;
      const bytes = isFcs ? this.#fcsBytes : port.rxBytes;
      const from = isFcs ? this.#fcsPlace * ETHERNET_FCS_BYTES - total : start + (isBeforeTag ? 0 : hole);
      const end = isFcs ? total + fcsBytes : isBeforeTag ? TAG_PLACE : total;
      const moved = scatter.place(qp, end - this.#placed, bytes, from + this.#placed, cycle);
      if (moved === WAIT || moved === ABSENT) return moved;
      if (moved === FULL) this.#syndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
      else if (moved === REFUSED) this.#syndrome = CqeSyndrome.LOCAL_PROT_ERR;
      else this.#placed += moved;
    }
    return DONE;
  }

  #complete({ port, side }: EthernetAttachment, slot: number, pair: QueuePair, cycle: Cycles): void {
    const { completions, errors } = this.#ports;
    const wireBytes = port.frameBytes(slot) + ETHERNET_FCS_BYTES;
    side.flowCounters?.countReceived(this.#qps.counterOf(pair.slot), wireBytes);
    pair.hasReceiveWqe = 0;
    this.completedCount++;
    const completion = completions.next(pair.receiveCqn, pair.slot);
    completion.opcode = ReceiveOpcode.SEND;
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.byteCount = this.#syndrome === 0 ? this.#placed : 0;
    completion.immediate = this.#hash;
    completion.syndrome = this.#syndrome;
    completion.tag = this.#tag === NO_TAG ? 0 : HAS_TAG | this.#tag;
    const checksums = this.#checksums;
    if (checksums !== undefined) {
      checksums.examine(port.rxBytes, port.frameStart(slot), port.frameBytes(slot));
      completion.ipStatus = checksums.ipStatus;
      completion.checksum = checksums.checksum;
    }
    completions.post(completion, cycle);
    if (this.#syndrome !== 0) errors.refused(pair.slot, 0, cycle);
  }

  #drop(reason: FrameDropReason): number {
    this.#ethernet!.side.steering.drop(reason);
    return 0;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#arrived.rebase(cycles);
  }
}

/** A ring, or a table of rings, in a state that receives. */
function takesFrames({ opcodeBase, state }: QueuePair): boolean {
  return opcodeBase === ETHERNET_OPCODE_BASE && state >= RTR && state !== ERR;
}
