/**
 * The key unit carries out operations on memory keys, one at a time for the whole device: fast registration,
 * invalidation and binding of windows, which the requester hands over, and the invalidation that a received SEND
 * requests.
 *
 *   requester ──QP──> fifo ─┐                      ┌─ DMA read of keys and of page lists
 *   responder ──────────────┴─> one operation ─────┼─ DMA write of keys
 *   commands: claim ────────────────┘              └─ fence over accesses under way
 *
 * Commands change the same entries: they claim the entries first, and the unit begins no operation until they release
 * them. An operation that has begun is completed even if its QP fails.
 */
import { CqeSyndrome, WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, Fifo, stallReasons } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import { WAIT } from '../answers.ts';
import type { KeyFormat } from '../host-interface/index.ts';
import {
  AccessFence,
  type AccessFencePorts,
  type ContextMemory,
  type DmaReads,
  type DmaWrites,
  type Translator,
} from '../memory/index.ts';
import {
  enlarged,
  noRecord,
  type QpSlot,
  type QpTable,
  type QueuePair,
  type SendRecord,
} from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import { fastRegister } from './fast-register.ts';
import { invalidate } from './invalidate.ts';
import type { KeyStores } from './key-entry.ts';
import { KEY_STEP_BYTES_MAX, KeyRefusal, type KeySteps } from './key-steps.ts';
import { bindWindow } from './windows.ts';

const keyUnitStalls = stallReasons('dmaRead', 'dmaWrite', 'accessesUnderWay', 'commands');
const {
  dmaRead: STALL_DMA_READ,
  dmaWrite: STALL_DMA_WRITE,
  accessesUnderWay: STALL_FENCE,
  commands: STALL_COMMANDS,
} = keyUnitStalls;

/** Interval at which the fence is polled, in cycles. */
const FENCE_POLL_CYCLES = 8;

/** The operation waits for its turn or its memory. */
const IDLE = 0;
const READY = 1;
const IN_DMA = 2;
const AT_FENCE = 3;

/** States of the responder's request. */
const NONE = 0;
const WAITING = 1;
const RUNNING = 2;
const ENDED = 3;

export interface KeyUnitPorts {
  readonly responses: AccessFencePorts['responses'];
  /** Blocks to notify when an operation of a work request ends. */
  readonly requester: {
    keyOperationEnded(pair: QueuePair, request: SendRecord, syndrome: number, cycle: Cycles): void;
  };
  readonly receiver: { wake(cycle: Cycles): void };
}

/** Parts of the device that {@link KeyUnit} uses. */
export interface KeyUnitSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'keyOperationCycles'>;
  readonly contextMemory: ContextMemory;
  readonly keyFormat: KeyFormat;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly qps: QpTable;
  readonly sram: Uint8Array;
  readonly translator: Translator;
  allocateSram(lengthBytes: number): number;
}

export class KeyUnit {
  readonly account = new BlockAccount('keyUnit', keyUnitStalls);
  /** Operations carried out, by WQE opcode; of received SENDs as SEND_INVAL. Refused ones are counted apart. */
  readonly counts = { fastRegister: 0, localInvalidate: 0, remoteInvalidate: 0, bind: 0, refused: 0 };
  readonly #domain: ClockDomain;
  readonly #config: KeyUnitSetup['config'];
  readonly #dmaRead: DmaReads;
  readonly #dmaWrite: DmaWrites;
  readonly #qps: QpTable;
  readonly #sram: Uint8Array;
  readonly #stores: KeyStores;
  readonly #stage: number;
  readonly #readRequester: number;
  readonly #writeRequester: number;
  readonly #readOffset: number;
  readonly #writeOffset: number;
  readonly #waiting: Fifo;
  #isWaiting = new Uint8Array(0);
  #ports!: KeyUnitPorts;
  readonly #fence: AccessFence;
  #isClaimed = false;
  #phase = IDLE;
  #steps: KeySteps<void> | undefined;
  /** Whose operation it is: a work request with its generation, or the responder's. */
  #pair: QueuePair | undefined;
  #request: SendRecord = noRecord;
  #generation = 0;
  #input: Uint8Array | undefined;
  #readBytes = 0;
  /** Incremented by a reset: completions of older operations are ignored. */
  #epoch = 0;
  #remote = NONE;
  #remotePair: QueuePair | undefined;
  #remotePd = 0;
  #remoteKey = 0;
  #remoteSyndrome = 0;

  constructor(setup: KeyUnitSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#dmaRead = setup.dmaRead;
    this.#dmaWrite = setup.dmaWrite;
    this.#qps = setup.qps;
    this.#sram = setup.sram;
    const { contextMemory, keyFormat, translator } = setup;
    this.#stores = { contextMemory, keyFormat, translator };
    this.#fence = new AccessFence(setup.dmaRead, setup.dmaWrite);
    this.#readOffset = setup.allocateSram(KEY_STEP_BYTES_MAX);
    this.#writeOffset = setup.allocateSram(KEY_STEP_BYTES_MAX);
    const trafficClass = TrafficClass.translation;
    this.#readRequester = setup.dmaRead.addRequester(
      { name: 'keyRead', trafficClass, fifoDepth: 1, weight: 4 },
      { done: (epoch, status, cycle) => this.#readDone(epoch, status, cycle) },
    );
    this.#writeRequester = setup.dmaWrite.addRequester(
      { name: 'keyWrite', trafficClass, fifoDepth: 1 },
      { done: (epoch, cycle) => this.#writeDone(epoch, cycle) },
    );
    this.#waiting = new Fifo({
      name: 'QPs with an operation on keys',
      capacity: setup.qps.slotCount,
      whenFull: 'never: each QP stands here at most once',
    });
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: KeyUnitPorts): void {
    this.#ports = ports;
    this.#fence.connect({ responses: ports.responses });
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#waiting.enlarge(slotCount);
    this.#isWaiting = enlarged(this.#isWaiting, slotCount);
  }

  /** Adds the newest record of the QP's list, an operation on keys, to be executed in order. */
  add(pair: QueuePair, cycle: Cycles): void {
    if (this.#isWaiting[pair.slot] === 1) return;
    this.#isWaiting[pair.slot] = 1;
    this.#waiting.push(pair.slot, cycle + 1);
    this.#wake(cycle + 1);
  }

  /**
   * Invalidates `key` of a protection domain for a SEND that `pair` has received. The receiver, which works on one
   * packet at a time, calls this until it has the answer, and is woken for that.
   * @returns WAIT, 0 or the syndrome of the receive work request
   */
  invalidateFor(pair: QueuePair, pd: number, key: number, cycle: Cycles): number {
    if (this.#remote === ENDED) {
      this.#remote = NONE;
      return this.#remoteSyndrome;
    }
    if (this.#remote === NONE) {
      this.#remote = WAITING;
      this.#remotePair = pair;
      this.#remotePd = pd;
      this.#remoteKey = key;
      this.#wake(cycle + 1);
    }
    return WAIT;
  }

  /** The packet whose key was to be invalidated is abandoned. */
  abandonRemote(): void {
    if (this.#remote !== NONE) this.#remote = NONE;
  }

  /**
   * Claims the entries for a command that will change them. False: an operation is in progress, and the command
   * retries.
   */
  claim(): boolean {
    if (this.#phase !== IDLE || this.#isClaimed) return false;
    this.#isClaimed = true;
    return true;
  }

  /** The command has ended. */
  release(): void {
    this.#isClaimed = false;
    this.#wake(this.#domain.cycle + 1);
  }

  /** True while an operation of the QP is carried out. */
  isServing(qp: QpSlot): boolean {
    return this.#phase !== IDLE && this.#pair?.slot === qp;
  }

  get heldCount(): number {
    return this.#waiting.count + (this.#phase === IDLE ? 0 : 1);
  }

  reset(): void {
    this.#epoch = (this.#epoch + 1) | 0;
    this.#waiting.clear();
    this.#isWaiting.fill(0);
    this.#isClaimed = false;
    this.#phase = IDLE;
    this.#steps = undefined;
    this.#pair = undefined;
    this.#request = noRecord;
    this.#remote = NONE;
    this.#remotePair = undefined;
    this.#input = undefined;
    this.#readBytes = 0;
  }

  inspect(): BlockState {
    return {
      phase: this.#phase,
      waiting: this.#waiting.values,
      remote: this.#remote,
      isClaimed: this.#isClaimed,
    };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#waiting.rebase(cycles);
  }

  #wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.#wake(this.account.freeCycle);
    if (this.#phase === IDLE && !this.#beginNext(cycle)) return;
    if (this.#phase === READY) this.#resume(cycle);
    else if (this.#phase === AT_FENCE) this.#pollFence(cycle);
  }

  /**
   * Begins the responder's operation or the oldest one of a work request. Returns false if none waits, or a command has
   * claimed the entries.
   */
  #beginNext(cycle: Cycles): boolean {
    const isRemote = this.#remote === WAITING;
    if (!isRemote && this.#waiting.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#waiting.isEmpty) this.#wake(this.#waiting.headCycle);
      return false;
    }
    if (this.#isClaimed) {
      this.account.stall(cycle, STALL_COMMANDS);
      return false;
    }
    if (isRemote) this.#beginRemote();
    else if (!this.#beginLocal()) {
      this.#wake(cycle + 1);
      return false;
    }
    this.#phase = READY;
    this.#input = undefined;
    this.#serve(cycle);
    return false;
  }

  #beginRemote(): void {
    this.#remote = RUNNING;
    this.#pair = this.#remotePair;
    this.#request = noRecord;
    this.#steps = invalidate(this.#stores, this.#remotePair!, this.#remotePd, this.#remoteKey, true);
  }

  /** False: the work request was flushed meanwhile. */
  #beginLocal(): boolean {
    const slot = this.#waiting.pop();
    this.#isWaiting[slot] = 0;
    const pair = this.#qps.rows[slot]!;
    const request = pair.recordTail;
    if (
      request === noRecord ||
      request.isKeyOperation === 0 ||
      request.isDone === 1 ||
      request.syndrome !== 0
    )
      return false;
    this.#pair = pair;
    this.#request = request;
    this.#generation = request.generation;
    this.#steps = this.#operation(pair, request);
    return true;
  }

  #operation(pair: QueuePair, { opcode, keyRequest }: SendRecord): KeySteps<void> {
    if (opcode === WqeOpcode.LOCAL_INVAL)
      return invalidate(this.#stores, pair, pair.pd, keyRequest.key, false);
    return opcode === WqeOpcode.FMR
      ? fastRegister(this.#stores, pair, keyRequest)
      : bindWindow(this.#stores, pair, keyRequest);
  }

  /** Carries the operation on to its next wait, or to its end. */
  #resume(cycle: Cycles): void {
    const input = this.#input;
    this.#input = undefined;
    try {
      const next = this.#steps!.next(input);
      if (next.done === true) return this.#end(0, cycle);
      const step = next.value;
      if (step.kind === 'fence') {
        this.#fence.begin();
        this.#phase = AT_FENCE;
        return this.#pollFence(cycle);
      }
      this.#phase = IN_DMA;
      if (step.kind === 'read') this.#read(step.address, step.lengthBytes, cycle);
      else this.#write(step.address, step.bytes, cycle);
    } catch (cause) {
      if (!(cause instanceof KeyRefusal)) throw cause;
      this.#end(cause.syndrome, cycle);
    }
  }

  /** The requesters have one place each, which the operation before has left: there is always room. */
  #read(address: number, lengthBytes: number, cycle: Cycles): void {
    this.#readBytes = lengthBytes;
    this.account.stall(cycle, STALL_DMA_READ);
    this.#dmaRead.request(this.#readRequester, address, lengthBytes, this.#readOffset, this.#epoch);
  }

  #write(address: number, bytes: Uint8Array, cycle: Cycles): void {
    this.#sram.set(bytes, this.#writeOffset);
    this.account.stall(cycle, STALL_DMA_WRITE);
    this.#dmaWrite.request(
      this.#writeRequester,
      address,
      bytes.length,
      this.#sram,
      this.#writeOffset,
      this.#epoch,
    );
  }

  #readDone(epoch: number, status: number, cycle: Cycles): void {
    if (epoch !== this.#epoch) return;
    const from = this.#readOffset;
    this.#input = status === 0 ? this.#sram.slice(from, from + this.#readBytes) : undefined;
    this.#goOn(cycle);
  }

  #writeDone(epoch: number, cycle: Cycles): void {
    if (epoch === this.#epoch) this.#goOn(cycle);
  }

  #goOn(cycle: Cycles): void {
    this.#phase = READY;
    this.#wake(cycle + 1);
  }

  #pollFence(cycle: Cycles): void {
    if (!this.#fence.isPassed()) {
      this.account.stall(cycle, STALL_FENCE);
      return this.#wake(cycle + FENCE_POLL_CYCLES);
    }
    this.#phase = READY;
    this.#serve(cycle);
  }

  #serve(cycle: Cycles): void {
    const { keyOperationCycles } = this.#config;
    this.account.serve(cycle, keyOperationCycles);
    this.#wake(cycle + keyOperationCycles);
  }

  #end(syndrome: number, cycle: Cycles): void {
    const pair = this.#pair!;
    const request = this.#request;
    this.#count(request, syndrome);
    this.#phase = IDLE;
    this.#steps = undefined;
    this.#pair = undefined;
    this.#request = noRecord;
    this.#serve(cycle);
    if (request !== noRecord) {
      if (request.generation === this.#generation)
        this.#ports.requester.keyOperationEnded(pair, request, syndrome, cycle);
      return;
    }
    if (this.#remote !== RUNNING) return;
    this.#remote = ENDED;
    this.#remoteSyndrome = syndrome === 0 ? 0 : CqeSyndrome.REMOTE_INVAL_REQ_ERR;
    this.#ports.receiver.wake(cycle + 1);
  }

  #count(request: SendRecord, syndrome: number): void {
    const { counts } = this;
    if (syndrome !== 0) counts.refused++;
    else if (request === noRecord) counts.remoteInvalidate++;
    else if (request.opcode === WqeOpcode.LOCAL_INVAL) counts.localInvalidate++;
    else if (request.opcode === WqeOpcode.FMR) counts.fastRegister++;
    else counts.bind++;
  }
}
