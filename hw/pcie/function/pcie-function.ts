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
 * Promises: requests take effect in order of arrival, one per cycle or as slowly as the target demands, none earlier than the
 * first edge after its arrival. Non-posted requests are answered in order, after a latency; a request that waits for its answer
 * never delays a later posted one. Every input has a defined result: an answer with Unsupported Request or Completer Abort, a
 * dropped write, an entry in the error registers; nothing throws.
 *
 * Source: PCI Express Base Specification 3.1, 2.3.1 (handling of received requests), 6.6 (resets).
 */

import type { Cycles, Picoseconds, ResetKind } from '../../../base/index.ts';
import { type BlockAccount, type BlockState, connectBlocks, type Fifo } from '../../../sim/index.ts';
import type { Bars } from './bars.ts';
import type { Completer } from './completer.ts';
import { type ConfigEffect, type ConfigSpace, D0 } from './config-space.ts';
import { type FunctionBlocks, functionWires, makeBlocks } from './function-blocks.ts';
import { type FunctionOptions, makeCore } from './function-core.ts';
import type { FunctionCounters } from './function-counters.ts';
import type { DeviceReads } from './function-ingress.ts';
import type { FunctionConfig } from './function-parameters.ts';
import type { BarTarget, FunctionPort } from './function-port.ts';
import type { MessageSender, Msix } from './msix.ts';

/** Neighbours of the function inside the device. */
export interface FunctionPorts {
  readonly target: BarTarget;
  readonly messageSender: MessageSender;
  readonly reads: DeviceReads;
}

export class PcieFunction {
  readonly config: FunctionConfig;
  readonly space: ConfigSpace;
  readonly bars: Bars;
  readonly counters: FunctionCounters;
  readonly blocks: FunctionBlocks;

  readonly #port: FunctionPort;
  #target: BarTarget | undefined;

  constructor(options: FunctionOptions) {
    const core = makeCore(options);
    this.config = core.config;
    this.space = core.space;
    this.bars = core.bars;
    this.counters = core.counters;
    this.#port = core.port;
    this.blocks = makeBlocks(core);
    core.domain.addEdgeKeeper(this);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    const { ingress, completer, latch } = this.blocks;
    for (const block of [ingress, completer, latch]) block.rebase(cycles);
  }

  /** Connects the device core; called once, before time starts. */
  connect(ports: FunctionPorts): void {
    this.#target = ports.target;
    connectBlocks(this.blocks, functionWires({ ...this.blocks, ...ports, pcieFunction: this }));
  }

  /** Counters of requests. */
  get account(): BlockAccount {
    return this.blocks.ingress.account;
  }

  get completer(): Completer {
    return this.blocks.completer;
  }

  get msix(): Msix {
    return this.blocks.msix;
  }

  /** The function may issue memory requests; DMA is refused while it is false. */
  get busMasterEnabled(): boolean {
    return this.space.isBusMasterEnabled;
  }

  /** {@link busMasterEnabled}, for the DMA engines. */
  isBusMaster(): boolean {
    return this.space.isBusMasterEnabled;
  }

  /** Payload limit (MPS) of the device's TLPs, in bytes. */
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

  /** Limit of outstanding non-posted requests: 32, or 256 with extended tags. */
  get tagCountMax(): number {
    return this.space.tagCountMax;
  }

  /** Infinity if software switched the timeout off. */
  get completionTimeoutPs(): Picoseconds {
    return this.space.completionTimeoutPs;
  }

  /** Bus, device and function number, as captured from the last configuration write. */
  requesterId(): number {
    return this.#port.completerId;
  }

  get msixEnabled(): boolean {
    return this.space.isMsixEnabled;
  }

  /**
   * Requests the interrupt of an MSI-X vector: sends its message after all writes requested earlier, or keeps it pending while
   * masked.
   * @returns false if the sender has no room: nothing has happened, ask again in a later cycle
   */
  requestInterrupt(vector: number, cycle: Cycles): boolean {
    return this.blocks.msix.request(vector, cycle);
  }

  /**
   * Sets the level of the legacy interrupt. The message leaves after every TLP already handed to the link port, so the caller
   * waits until the write that it announces was handed over.
   */
  setIntx(isAsserted: boolean, cycle: Cycles): void {
    const { intx, outbox, egress } = this.blocks;
    intx.setLevel(isAsserted);
    this.space.header.set('status', 'interruptStatus', isAsserted ? 1 : 0);
    if (outbox.hasMessage) egress.wake(cycle + 1);
  }

  /** A completion that answers no outstanding request; the caller still makes the port consume it. */
  reportUnexpectedCompletion(offset: number): void {
    this.blocks.ingress.reportUnexpectedCompletion(offset);
  }

  /** A request of the device was not completed in time. */
  reportCompletionTimeout(): void {
    this.blocks.ingress.reportCompletionTimeout();
  }

  /**
   * Resets the function at a clock edge, as the device's own reset register or the link does. Configuration space, MSI-X table
   * and interrupt level return to their initial values, the target is notified, and no request starts for `resetCycles`.
   * Completions of earlier reads may still arrive: the DMA read engine drops them.
   */
  reset(kind: ResetKind, cycle: Cycles): void {
    const { msix, intx, completer, outbox, latch, ingress, egress } = this.blocks;
    this.counters.resets++;
    this.space.reset(kind);
    this.bars.decode(this.space);
    msix.reset();
    intx.reset();
    if (kind === 'fundamental') {
      completer.reset();
      this.#capture(0);
    }
    outbox.reset();
    latch.reset();
    ingress.cutShort(cycle, cycle + this.config.resetCycles);
    if (outbox.hasMessage) egress.wake(cycle + 1);
    this.#target?.functionReset(cycle);
  }

  /** The root complex resets the link, and lowers its end of the legacy interrupt's wire itself. */
  linkDown(cycle: Cycles): void {
    this.blocks.intx.linkDown();
    this.reset('fundamental', cycle);
  }

  get fifos(): readonly Fifo[] {
    return this.blocks.ingress.fifos;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const { ingress, completer, outbox, latch, msix, intx } = this.blocks;
    return {
      ...ingress.inspect(),
      requesterId: this.#port.completerId,
      registers: this.space.inspect(),
      completer: completer.inspect(),
      outbox: outbox.inspect(),
      errorLatch: latch.inspect(),
      msix: msix.inspect(),
      intx: intx.inspect(),
    };
  }

  /**
   * Removes the device from its slot, or returns it as after power-on. An absent device is in reset; reads and configuration
   * requests are answered with Unsupported Request, which a core reads as all ones, and nothing else has an effect. On a real
   * bus the root port would answer, and lower the wire of the legacy interrupt.
   */
  setPresent(isPresent: boolean, cycle: Cycles): void {
    this.blocks.ingress.setPresent(isPresent);
    this.reset('fundamental', cycle);
  }

  /** A configuration write to the function: it captures its bus and device number (2.2.6.2), and updates the state derived from the registers. */
  configWritten(targetId: number, effect: ConfigEffect, cycle: Cycles): void {
    this.#capture(targetId);
    const { space } = this;
    const { msix, intx, outbox, egress } = this.blocks;
    if (effect === 'functionLevelReset') this.reset('functionLevel', cycle);
    else if (effect === 'powerUpReset') this.reset('hot', cycle);
    this.bars.decode(space);
    msix.control(space.isMsixEnabled, space.isMsixFunctionMasked, space.isBusMasterEnabled);
    const isIntxDisabled = space.isMsixEnabled || space.header.get('command', 'interruptDisable') === 1;
    intx.enable(!isIntxDisabled && space.powerState === D0);
    if (outbox.hasMessage || msix.pendingCount > 0) egress.wake(cycle + 1);
  }

  #capture(id: number): void {
    this.#port.completerId = id;
  }
}
