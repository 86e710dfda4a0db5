/**
 * Ingress of the function: requests wait in a fifo and are processed one per cycle, or as slowly as the device core demands;
 * completions are passed to the read engine; errors seen between two edges wait in the latch for the next one.
 */
import { UncorrectableError } from '../../../abi/pci/index.ts';
import type { Cycles } from '../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
} from '../../../sim/index.ts';
import type { TlpReceiver } from '../link/index.ts';
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
  SIDEBAND_RESET,
  SIDEBAND_WORD_CHANGED,
  STATUS_ABORT,
  STATUS_UNSUPPORTED_REQUEST,
  statusOf,
  type TlpHeader,
  tlpHeaderOf,
  WORD_AUX,
  WORD_DATA,
  WORD_FLAGS,
  WORD_KIND,
} from '../tlp/index.ts';
import type { Completer } from './completer.ts';
import type { ConfigSpace } from './config-space.ts';
import type { ErrorLatch } from './error-latch.ts';
import type { ErrorRole } from './error-reporting.ts';
import type { FunctionCore } from './function-core.ts';
import type { FunctionCounters } from './function-counters.ts';
import type { FunctionEgress } from './function-egress.ts';
import type { BarTarget, FunctionPort } from './function-port.ts';
import type { RequestDecoder } from './request-decoder.ts';

/** The engine whose requests the completions answer. */
interface CompletionReceiver {
  /** A completion has arrived, now; the receiver makes the port consume it. */
  receiveCompletion(offset: number): void;
  /** Whether the completion answers a read that no reset has cancelled. Called only for those with an error. */
  isAwaited?(offset: number): boolean;
}

/** The device's own reads. */
export interface DeviceReads extends CompletionReceiver {
  /** Non-posted requests that await completions. */
  readonly pendingTagCount: number;
}

export interface FunctionIngressPorts {
  readonly pcieFunction: {
    /** The link is reset, and with it the function. */
    linkDown(cycle: Cycles): void;
  };
  readonly reads: DeviceReads;
  /** The device core, which may monitor words of memory. */
  readonly target: Pick<BarTarget, 'wordChanged'>;
  readonly decoder: Pick<RequestDecoder, 'memoryWrite' | 'memoryRead' | 'configRequest' | 'malformed'>;
  readonly completer: Pick<Completer, 'answer'>;
  readonly latch: Pick<ErrorLatch, 'addError' | 'addAbort' | 'addPoisoned' | 'apply'>;
  readonly egress: Pick<FunctionEgress, 'wake'>;
}

/** The link port's receiver. */
export class FunctionIngress implements TlpReceiver {
  readonly account = new BlockAccount('pcieIngress');

  readonly #process: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: FunctionPort;
  readonly #space: ConfigSpace;
  readonly #counters: FunctionCounters;
  readonly #requests: Fifo;
  readonly #stage: number;
  #ports!: FunctionIngressPorts;
  #reads!: DeviceReads;
  /** First cycle at which the next request may start. */
  #freeCycle = 0;
  #isHeldInReset = false;
  /** The device is absent: every request to it is answered with Unsupported Request. */
  #isAbsent = false;

  constructor({ process, domain, port, config, space, counters }: FunctionCore) {
    this.#process = process;
    this.#domain = domain;
    this.#port = port;
    this.#space = space;
    this.#counters = counters;
    // The fifo has at least the header credits that the port advertises (checkFunctionConfig): it cannot overflow.
    this.#requests = new Fifo({
      name: 'requests',
      capacity: config.requestFifoDepth,
      whenFull: 'the TLP stays in the receive buffer and keeps its credits',
    });
    this.#stage = domain.addStage(this.#run, this);
  }

  connect(ports: FunctionIngressPorts): void {
    this.#ports = ports;
    this.#reads = ports.reads;
  }

  /** A completion that answers no outstanding request; the caller still makes the port consume it. */
  reportUnexpectedCompletion(offset: number): void {
    const header = tlpHeaderOf(this.#port.reader, offset);
    this.#defer(UncorrectableError.unexpectedCompletion, 'advisory', header);
  }

  /** A request of the device was not completed in time. */
  reportCompletionTimeout(): void {
    this.#defer(UncorrectableError.completionTimeout, 'sole');
  }

  /** The function is reset at `cycle`: the present request ends, and none starts before `openCycle`. */
  cutShort(cycle: Cycles, openCycle: Cycles): void {
    this.account.close(cycle);
    this.#freeCycle = openCycle;
  }

  /** The device is removed from its slot, or returned: see {@link PcieFunction.setPresent}. */
  setPresent(isPresent: boolean): void {
    this.#isAbsent = !isPresent;
    this.#isHeldInReset = !isPresent;
  }

  get fifos(): readonly Fifo[] {
    return [this.#requests];
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    this.#requests.rebase(cycles);
    this.#freeCycle -= cycles;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      requests: this.#requests.count,
      isHeldInReset: this.#isHeldInReset,
      isAbsent: this.#isAbsent,
    };
  }

  /** A record has arrived: called by the link port. */
  receiveTlp(offset: number, kind: number): void {
    if (kind === COMPLETION_DATA || kind === COMPLETION) {
      const flags = this.#port.reader.words[(offset >> 2) + WORD_FLAGS]!;
      if ((flags & (FLAG_POISONED | FLAG_STATUS_MASK)) !== 0) this.#noteBadCompletion(offset, flags);
      this.#reads.receiveCompletion(offset);
      return;
    }
    if (kind === SIDEBAND_WORD_CHANGED) {
      const number = this.#port.reader.words[(offset >> 2) + WORD_AUX]!;
      this.#port.consume(offset);
      if (!this.#isHeldInReset) this.#ports.target.wordChanged?.(number);
      return;
    }
    const cycle = this.#domain.clock.cycleAfter(this.#process.nowPs);
    this.#requests.push(offset, cycle);
    this.#domain.wake(this.#stage, cycle);
  }

  /** Completions of reads issued before a reset are discarded silently and set no error bit afterwards: PCIe Base 3.0, 6.6.2. */
  #noteBadCompletion(offset: number, flags: number): void {
    if (this.#reads.isAwaited?.(offset) === false) return;
    const { latch } = this.#ports;
    const cycle = this.#domain.clock.cycleAfter(this.#process.nowPs);
    const status = statusOf(flags);
    if (status === STATUS_UNSUPPORTED_REQUEST) latch.addAbort('receivedMasterAbort', cycle);
    if (status === STATUS_ABORT) latch.addAbort('receivedTargetAbort', cycle);
    if ((flags & FLAG_POISONED) !== 0) {
      latch.addPoisoned(tlpHeaderOf(this.#port.reader, offset), 'completion', cycle);
    }
    this.#domain.wake(this.#stage, cycle);
  }

  /** Outside the stages an error takes effect at the next edge, regardless of other events at this instant. */
  #defer(error: UncorrectableError, role: ErrorRole, header?: TlpHeader): void {
    const cycle = this.#domain.clock.cycleAfter(this.#process.nowPs);
    this.#ports.latch.addError(error, role, header, cycle);
    this.#domain.wake(this.#stage, cycle);
  }

  #run(cycle: Cycles): void {
    const latchCycle = this.#ports.latch.apply(cycle);
    if (latchCycle !== Number.POSITIVE_INFINITY) this.#domain.wake(this.#stage, latchCycle);
    const requests = this.#requests;
    if (requests.isEmpty) return;
    if (cycle >= this.#freeCycle && cycle >= requests.headCycle) {
      const offset = requests.pop();
      const kind = this.#port.reader.words[(offset >> 2) + WORD_KIND]!;
      const occupiedCycles =
        kind === MEMORY_WRITE && !this.#isHeldInReset
          ? this.#ports.decoder.memoryWrite(offset, cycle)
          : this.#takeOther(offset, kind, cycle);
      this.account.serve(cycle, occupiedCycles);
      // A reset caused by this request keeps the ingress closed for longer.
      if (this.#freeCycle < cycle + occupiedCycles) this.#freeCycle = cycle + occupiedCycles;
      if (requests.isEmpty) return;
    }
    this.#domain.wake(this.#stage, Math.max(this.#freeCycle, requests.headCycle));
  }

  /** Everything except memory writes; takes one cycle. While the link is in reset the function receives nothing. */
  #takeOther(offset: number, kind: number, cycle: Cycles): number {
    const { pcieFunction, decoder } = this.#ports;
    if (kind === SIDEBAND_RESET) {
      const isAsserted = this.#port.reader.words[(offset >> 2) + WORD_DATA] === 1;
      this.#isHeldInReset = isAsserted || this.#isAbsent;
      if (isAsserted) pcieFunction.linkDown(cycle);
      this.#port.consume(offset);
    } else if (this.#isHeldInReset) {
      this.#refuse(offset, kind, cycle);
    } else if (kind === MEMORY_READ) {
      decoder.memoryRead(offset, cycle);
    } else if (kind === CONFIG_READ || kind === CONFIG_WRITE) {
      const isPending = this.#reads.pendingTagCount > 0 ? 1 : 0;
      this.#space.express.set('deviceStatus', 'transactionsPending', isPending);
      decoder.configRequest(offset, kind, cycle);
    } else {
      // Messages to an endpoint (power limits, vendor defined) are accepted silently (2.2.8).
      if (kind === MESSAGE) this.#counters.messages++;
      else decoder.malformed(offset);
      this.#port.consume(offset);
    }
    return 1;
  }

  /** The function receives nothing; only the stand-in for an absent device answers. */
  #refuse(offset: number, kind: number, cycle: Cycles): void {
    const isAnswered = kind === MEMORY_READ || kind === CONFIG_READ || kind === CONFIG_WRITE;
    if (!this.#isAbsent || !isAnswered) {
      this.#port.consume(offset);
      return;
    }
    const { completer, egress } = this.#ports;
    completer.answer(offset, STATUS_UNSUPPORTED_REQUEST, 0, cycle + 1);
    egress.wake(cycle + 1);
  }
}
