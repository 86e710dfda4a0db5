/**
 * The PCI Express function: the endpoint between the link and the device core.
 *
 *     link port ─┬─ requests ──► fifo ─► ingress ─┬─ configuration space ─┐
 *                │                                ├─ MSI-X table, PBA ────┼─► completer ─► link port
 *                │                                └─ BAR target ──────────┘
 *                └─ completions ─► listener (DMA read engine)
 *     requestInterrupt ─► MSI-X ─► message sender (DMA write engine)
 *     setIntx, errors ─► outbox ─► link port
 *
 * Promises: requests take effect in the order of their arrival, one per cycle or as slowly as the target says, none
 * earlier than the first edge after its arrival. Non-posted requests are answered in order, after a latency; one that
 * waits for its answer never holds up a posted one behind it. Whatever arrives, something defined happens: an answer
 * with Unsupported Request or Completer Abort, a dropped write, an entry in the error registers; nothing throws.
 *
 * Source: PCI Express Base Specification 3.1, 2.3.1 (handling of received requests), 6.6 (resets).
 */

import { UncorrectableError } from '../../abi/pci/index.ts';
import type { ResetKind } from '../../base/registers.ts';
import type { Cycles, Picoseconds } from '../../base/units.ts';
import type { BlockState } from '../../sim/block.ts';
import { BlockAccount } from '../../sim/block-account.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import { Fifo } from '../../sim/fifo.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import { ErrorReporting, type ErrorRole } from './aer.ts';
import { Bars } from './bars.ts';
import { Completer } from './completer.ts';
import { type ConfigEffect, ConfigSpace, D0, type LinkIdentity } from './config-space.ts';
import { ErrorLatch } from './error-latch.ts';
import type { FunctionConfig } from './function-parameters.ts';
import type { BarTarget, FunctionPort } from './function-port.ts';
import { Intx } from './intx.ts';
import type { TlpReceiver } from './link-port.ts';
import { MessageOutbox } from './message-outbox.ts';
import { type MessageSender, Msix } from './msix.ts';
import { type DecoderEffects, type FunctionCounters, RequestDecoder } from './request-decoder.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_POISONED,
  FLAG_STATUS_MASK,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  POSTED,
  SIDEBAND_RESET,
  STATUS_ABORT,
  STATUS_UNSUPPORTED_REQUEST,
  statusOf,
  WORD_DATA,
  WORD_FLAGS,
  WORD_KIND,
} from './tlp.ts';
import { type TlpHeader, tlpHeaderOf } from './tlp-header.ts';

export interface FunctionOptions {
  readonly process: LogicalProcess;
  /** The device's clock domain; the function adds two stages to it. */
  readonly domain: ClockDomain;
  readonly port: FunctionPort;
  readonly config: FunctionConfig;
  readonly link: LinkIdentity;
  /** Accounting class of INTx and error messages. */
  readonly messageTrafficClass: number;
}

/** The engine whose requests the completions answer. */
interface CompletionReceiver {
  /** A completion has arrived, now; the receiver has the port consume it. */
  receiveCompletion(offset: number): void;
  /** Whether the completion answers a read that a reset has not taken back. Asked of those with an error alone. */
  isAwaited?(offset: number): boolean;
}

/** The device's own reads. */
export interface DeviceReads extends CompletionReceiver {
  /** Non-posted requests that await completions. */
  readonly pendingTagCount: number;
}

/** What the function is connected to inside the device. */
export interface FunctionPorts {
  readonly target: BarTarget;
  readonly messageSender: MessageSender;
  /** Left out: the device reads nothing, and every completion is unexpected. */
  readonly reads?: DeviceReads;
}

/** The link port's receiver: the device that makes the function connects it there. */
export class PcieFunction implements TlpReceiver {
  readonly config: FunctionConfig;
  readonly space: ConfigSpace;
  readonly bars: Bars;
  readonly msix: Msix;
  readonly intx: Intx;
  readonly errors: ErrorReporting;
  readonly outbox: MessageOutbox;
  readonly counters: FunctionCounters;
  readonly account = new BlockAccount('pcieIngress');
  readonly completer: Completer;

  readonly #process: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: FunctionPort;
  readonly #requests: Fifo;
  readonly #latch: ErrorLatch;
  readonly #egressStage: number;
  readonly #ingressStage: number;
  readonly #decoder: RequestDecoder;
  #target: BarTarget | undefined;
  #reads: DeviceReads;
  /** First cycle at which the next request may be started. */
  #freeCycle = 0;
  #isHeldInReset = false;
  /** The device is not there: whatever is asked of it is answered with Unsupported Request. */
  #isAbsent = false;
  #requesterId = 0;

  constructor({ process, domain, port, config, link, messageTrafficClass }: FunctionOptions) {
    this.config = config;
    this.#process = process;
    this.#domain = domain;
    this.#port = port;
    this.space = new ConfigSpace(config, link);
    this.bars = new Bars(config);
    this.msix = new Msix(this.bars, config);
    this.intx = new Intx(config.interruptPin);
    this.outbox = new MessageOutbox(port, this.intx, messageTrafficClass);
    this.errors = new ErrorReporting(this.space, (code) => this.#sendError(code));
    this.#latch = new ErrorLatch(this.space, this.errors);
    this.completer = new Completer(port, config.requestFifoDepth, config.registerAccessBytesMax);
    this.#decoder = new RequestDecoder(
      {
        port,
        config,
        space: this.space,
        bars: this.bars,
        msix: this.msix,
        completer: this.completer,
        errors: this.errors,
        latch: this.#latch,
      },
      this.#decoderEffects(),
    );
    this.counters = this.#decoder.counters;
    // At least the header credits that the port advertises (checkFunctionConfig): it cannot overflow.
    this.#requests = new Fifo({
      name: 'requests',
      capacity: config.requestFifoDepth,
      whenFull: 'the TLP stays in the receive buffer and keeps its credits',
    });
    this.#egressStage = domain.addStage(this.#egress, this);
    this.#ingressStage = domain.addStage(this.#ingress, this);
    this.#reads = {
      pendingTagCount: 0,
      receiveCompletion: (offset) => {
        this.reportUnexpectedCompletion(offset);
        port.consume(offset);
      },
    };
    domain.addEdgeKeeper(this);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.account.rebase(cycles);
    this.completer.rebase(cycles);
    this.#latch.rebase(cycles);
    this.#requests.rebase(cycles);
    this.#freeCycle -= cycles;
  }

  /** See LinkSender: completions and messages wait for room. */
  linkSpace(): void {
    this.#domain.wakeAfter(this.#egressStage, this.#process.nowPs);
  }

  /** Connects the device core; to be called once, before time starts. */
  connect({ target, messageSender, reads = this.#reads }: FunctionPorts): void {
    this.#target = target;
    this.#decoder.connect({ target });
    this.msix.connect({ messageSender });
    this.#reads = reads;
  }

  /** The function may issue memory requests; DMA is refused while it is false. */
  get busMasterEnabled(): boolean {
    return this.space.isBusMasterEnabled;
  }

  /** {@link busMasterEnabled}, as the DMA engines ask. */
  isBusMaster(): boolean {
    return this.space.isBusMasterEnabled;
  }

  /** Payload limit (MPS) of what the device sends, in bytes. */
  maxPayloadBytes(): number {
    return this.space.maxPayloadBytes;
  }

  /** Limit (MRRS) of one read request of the device, in bytes. */
  maxReadRequestBytes(): number {
    return this.space.maxReadRequestBytes;
  }

  get relaxedOrderingEnabled(): boolean {
    return this.space.isRelaxedOrderingEnabled;
  }

  /** Non-posted requests that may be outstanding at once: 32, or 256 with extended tags. */
  get tagCountMax(): number {
    return this.space.tagCountMax;
  }

  /** Infinity when software switched the timeout off. */
  get completionTimeoutPs(): Picoseconds {
    return this.space.completionTimeoutPs;
  }

  /** Bus, device and function number, as captured from the last configuration write. */
  requesterId(): number {
    return this.#requesterId;
  }

  get msixEnabled(): boolean {
    return this.space.isMsixEnabled;
  }

  /**
   * Requests the interrupt of an MSI-X vector: sends its message behind all writes requested before, or keeps it
   * pending while masked.
   * @returns false when the sender has no room: nothing has happened, ask again in a later cycle
   */
  requestInterrupt(vector: number, cycle: Cycles): boolean {
    return this.msix.request(vector, cycle);
  }

  /**
   * Sets the level of the legacy interrupt. The message leaves behind every TLP already handed to the link port, so
   * the caller waits until the write it announces has been handed over.
   */
  setIntx(isAsserted: boolean, cycle: Cycles): void {
    this.intx.setLevel(isAsserted);
    this.space.header.set('status', 'interruptStatus', isAsserted ? 1 : 0);
    if (this.outbox.hasMessage) this.#domain.wake(this.#egressStage, cycle + 1);
  }

  /** A completion that answers no outstanding request; the caller still has the port consume it. */
  reportUnexpectedCompletion(offset: number): void {
    const header = tlpHeaderOf(this.#port.reader, offset);
    this.#defer(UncorrectableError.unexpectedCompletion, 'advisory', header);
  }

  /** A request of the device was not completed in time. */
  reportCompletionTimeout(): void {
    this.#defer(UncorrectableError.completionTimeout, 'sole');
  }

  /**
   * Resets the function at a clock edge, as the device's own reset register or the link does. Configuration space,
   * MSI-X table and interrupt level go back to their initial values, the target is notified, and no request is started
   * for `resetCycles`. Completions of reads issued before may still arrive: the DMA read engine drops them.
   */
  reset(kind: ResetKind, cycle: Cycles): void {
    this.counters.resets++;
    this.space.reset(kind);
    this.bars.decode(this.space);
    this.msix.reset();
    this.intx.reset();
    if (kind === 'fundamental') {
      this.completer.reset();
      this.#capture(0);
    }
    this.outbox.reset();
    this.#latch.reset();
    this.#freeCycle = cycle + this.config.resetCycles;
    if (this.outbox.hasMessage) this.#domain.wake(this.#egressStage, cycle + 1);
    this.#target?.functionReset(cycle);
  }

  get fifos(): readonly Fifo[] {
    return [this.#requests];
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      requests: this.#requests.count,
      isHeldInReset: this.#isHeldInReset,
      isAbsent: this.#isAbsent,
      requesterId: this.#requesterId,
      registers: this.space.inspect(),
      completer: this.completer.inspect(),
      outbox: this.outbox.inspect(),
      errorLatch: this.#latch.inspect(),
      msix: this.msix.inspect(),
      intx: this.intx.inspect(),
    };
  }

  /**
   * Takes the device out of its slot, or puts it back as after power-on. While it is not there it is in reset; reads
   * and configuration requests are answered with Unsupported Request, which a core reads as all ones, and nothing else
   * has an effect. On a real bus the root port would give that answer, and lower the wire of the legacy interrupt.
   */
  setPresent(isPresent: boolean, cycle: Cycles): void {
    this.#isAbsent = !isPresent;
    this.#isHeldInReset = !isPresent;
    this.reset('fundamental', cycle);
  }

  /** A record has arrived: called by the link port. */
  receiveTlp(offset: number, kind: number): void {
    if (kind === COMPLETION_DATA || kind === COMPLETION) {
      const flags = this.#port.reader.words[(offset >> 2) + WORD_FLAGS]!;
      if ((flags & (FLAG_POISONED | FLAG_STATUS_MASK)) !== 0) this.#noteBadCompletion(offset, flags);
      this.#reads.receiveCompletion(offset);
      return;
    }
    const cycle = this.#domain.clock.cycleAfter(this.#process.nowPs);
    this.#requests.push(offset, cycle);
    this.#domain.wake(this.#ingressStage, cycle);
  }

  /** Completions of reads issued before a reset are discarded silently and set no error bit afterwards: PCIe Base 3.0, 6.6.2. */
  #noteBadCompletion(offset: number, flags: number): void {
    if (this.#reads.isAwaited?.(offset) === false) return;
    const cycle = this.#domain.clock.cycleAfter(this.#process.nowPs);
    const status = statusOf(flags);
    if (status === STATUS_UNSUPPORTED_REQUEST) this.#latch.addAbort('receivedMasterAbort', cycle);
    if (status === STATUS_ABORT) this.#latch.addAbort('receivedTargetAbort', cycle);
    if ((flags & FLAG_POISONED) !== 0) {
      this.#latch.addPoisoned(tlpHeaderOf(this.#port.reader, offset), 'completion', cycle);
    }
    this.#domain.wake(this.#ingressStage, cycle);
  }

  /** Outside the stages an error takes effect at the next edge, whatever else happens at this instant. */
  #defer(error: UncorrectableError, role: ErrorRole, header?: TlpHeader): void {
    const cycle = this.#domain.clock.cycleAfter(this.#process.nowPs);
    this.#latch.addError(error, role, header, cycle);
    this.#domain.wake(this.#ingressStage, cycle);
  }

  #egress(cycle: Cycles): void {
    const answerCycle = this.completer.send(cycle);
    if (answerCycle !== Number.POSITIVE_INFINITY) this.#domain.wake(this.#egressStage, answerCycle);
    if (this.outbox.hasMessage) {
      this.outbox.send(this.#requesterId);
      if (this.outbox.hasMessage && this.#port.canSend(POSTED))
        this.#domain.wake(this.#egressStage, cycle + 1);
    }
    if (this.msix.pendingCount > 0 && this.msix.deliverPending(cycle)) {
      this.#domain.wake(this.#egressStage, cycle + 1);
    }
  }

  #ingress(cycle: Cycles): void {
    const latchCycle = this.#latch.apply(cycle);
    if (latchCycle !== Number.POSITIVE_INFINITY) this.#domain.wake(this.#ingressStage, latchCycle);
    const requests = this.#requests;
    if (requests.isEmpty) return;
    if (cycle >= this.#freeCycle && cycle >= requests.headCycle) {
      const offset = requests.pop();
      const kind = this.#port.reader.words[(offset >> 2) + WORD_KIND]!;
      const occupiedCycles =
        kind === MEMORY_WRITE && !this.#isHeldInReset
          ? this.#decoder.memoryWrite(offset, cycle)
          : this.#takeOther(offset, kind, cycle);
      this.account.serve(cycle, occupiedCycles);
      // A reset that this request brought about keeps the ingress closed for longer.
      if (this.#freeCycle < cycle + occupiedCycles) this.#freeCycle = cycle + occupiedCycles;
      if (requests.isEmpty) return;
    }
    this.#domain.wake(this.#ingressStage, Math.max(this.#freeCycle, requests.headCycle));
  }

  /** Everything but memory writes; takes one cycle. While the link is in reset nothing reaches the function. */
  #takeOther(offset: number, kind: number, cycle: Cycles): number {
    if (kind === SIDEBAND_RESET) {
      const isAsserted = this.#port.reader.words[(offset >> 2) + WORD_DATA] === 1;
      this.#isHeldInReset = isAsserted || this.#isAbsent;
      if (isAsserted) {
        this.intx.linkDown();
        this.reset('fundamental', cycle);
      }
      this.#port.consume(offset);
    } else if (this.#isHeldInReset) {
      this.#refuse(offset, kind, cycle);
    } else if (kind === MEMORY_READ) {
      this.#decoder.memoryRead(offset, cycle);
    } else if (kind === CONFIG_READ || kind === CONFIG_WRITE) {
      const isPending = this.#reads.pendingTagCount > 0 ? 1 : 0;
      this.space.express.set('deviceStatus', 'transactionsPending', isPending);
      this.#decoder.configRequest(offset, kind, cycle);
    } else {
      // Messages to an endpoint (power limits, vendor defined) are taken silently (2.2.8).
      if (kind === MESSAGE) this.counters.messages++;
      else this.#decoder.malformed(offset);
      this.#port.consume(offset);
    }
    return 1;
  }

  /** Nothing reaches the function; only what takes the place of a device that is not there answers. */
  #refuse(offset: number, kind: number, cycle: Cycles): void {
    const isAnswered = kind === MEMORY_READ || kind === CONFIG_READ || kind === CONFIG_WRITE;
    if (!this.#isAbsent || !isAnswered) {
      this.#port.consume(offset);
      return;
    }
    this.completer.answer(offset, STATUS_UNSUPPORTED_REQUEST, 0, cycle + 1);
    this.#domain.wake(this.#egressStage, cycle + 1);
  }

  #decoderEffects(): DecoderEffects {
    return {
      configWritten: (targetId, effect, cycle) => {
        this.#capture(targetId);
        this.#configWritten(effect, cycle);
      },
      tableWritten: (cycle) => {
        if (this.msix.pendingCount > 0) this.#domain.wake(this.#egressStage, cycle + 1);
      },
      answered: (readyCycle) => this.#domain.wake(this.#egressStage, readyCycle),
    };
  }

  /** The function learns its bus and device number from every configuration write to it (2.2.6.2). */
  #capture(id: number): void {
    this.#requesterId = id;
    this.#port.completerId = id;
  }

  /** Lets everything that depends on configuration space know of a write to it. */
  #configWritten(effect: ConfigEffect, cycle: Cycles): void {
    const { space } = this;
    if (effect === 'functionLevelReset') this.reset('functionLevel', cycle);
    else if (effect === 'powerUpReset') this.reset('hot', cycle);
    this.bars.decode(space);
    this.msix.control(space.isMsixEnabled, space.isMsixFunctionMasked, space.isBusMasterEnabled);
    const isIntxDisabled = space.isMsixEnabled || space.header.get('command', 'interruptDisable') === 1;
    this.intx.enable(!isIntxDisabled && space.powerState === D0);
    if (this.outbox.hasMessage || this.msix.pendingCount > 0) this.#domain.wake(this.#egressStage, cycle + 1);
  }

  #sendError(messageCode: number): void {
    this.outbox.addError(messageCode);
    this.#domain.wake(this.#egressStage, this.#domain.cycle + 1);
  }
}
