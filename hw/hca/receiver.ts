/**
 * The receiver: takes packets from the wire port one at a time, in order, finds their QP, and hands them to the
 * responder (requests) or to the acknowledgement side (responses).
 *
 *   wire port ──> fifo (ICRC, parsing) ──┬──> QP, context ──> responder ──> payload writes, completions, responses
 *    loopback ──> fifo ──────────────────┘            └──> acknowledgements ──> payload writes, completions
 *
 * In-order and blocking: what is not on chip stops the receiver, and with it, through the wire's credits, the sender.
 */
import { QpState } from '../../abi/qpc.ts';
import { BlockAccount, Fifo } from '../../sim/index.ts';
import { isKnownOpcode, isRequest } from '../../wire/opcodes.ts';
import { WORD_DESTINATION_QPN, WORD_LIDS, WORD_OPCODE, WORD_PAYLOAD_BYTES } from '../../wire/packet.ts';
import type { Acknowledgements } from './acknowledgements.ts';
import { type HcaCore, PORT_RECEIVER } from './core.ts';
import type { Loopback } from './loopback.ts';
import type { PacketPort } from './packet-port.ts';
import type { PayloadWriter } from './payload-writer.ts';
import { FIRST_MULTICAST_LID, isOwnLid, type PortAddress } from './port-address.ts';
import { isReliableConnection } from './qp-table.ts';
import { receiverStallReasons, STALL_COMPLETION, STALL_CONTEXT, WAIT } from './receive-pipeline.ts';
import type { ReceivedPackets } from './received-packets.ts';
import type { Responder } from './responder.ts';

const RC_OPCODES_END = 0x20;

export class Receiver {
  readonly account = new BlockAccount('receiver', receiverStallReasons);
  readonly #core: HcaCore;
  readonly #port: PacketPort;
  readonly #loopback: Loopback;
  readonly #packets: ReceivedPackets;
  readonly #address: PortAddress;
  readonly #writer: PayloadWriter;
  /** Packets that came by the cable, and by the loopback. */
  readonly #arrived: Fifo;
  readonly #looped: Fifo;
  /** The fifo whose oldest packet is being worked on. */
  #source: Fifo;
  readonly #stage: number;
  #responder: Responder | undefined;
  #acknowledgements: Acknowledgements | undefined;
  /** QP of the packet being worked on, or -1; and whether the packet is a request. */
  #active = -1;
  #isRequest = false;

  constructor(
    core: HcaCore,
    port: PacketPort,
    loopback: Loopback,
    packets: ReceivedPackets,
    address: PortAddress,
    writer: PayloadWriter,
  ) {
    this.#core = core;
    this.#port = port;
    this.#loopback = loopback;
    this.#packets = packets;
    this.#address = address;
    this.#writer = writer;
    this.#arrived = new Fifo(port.receivePacketsMax);
    this.#looped = new Fifo(loopback.capacity);
    this.#source = this.#arrived;
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    const wake = (cycle: number): void => this.wake(cycle);
    core.translator.attach(PORT_RECEIVER, wake);
    core.qpcCache.attach(PORT_RECEIVER, wake);
    port.onPacket((offset) => this.#packetArrived(offset));
    loopback.onPacket((offset, cycle) => this.#packetLooped(offset, cycle));
  }

  connect(responder: Responder, acknowledgements: Acknowledgements): void {
    this.#responder = responder;
    this.#acknowledgements = acknowledgements;
  }

  wake(cycle: number): void {
    this.#core.domain.wake(this.#stage, cycle);
  }

  /** Room for a completion became free. */
  completionSpace(cycle: number): void {
    if (this.account.isStalledFor(STALL_COMPLETION)) this.wake(cycle + 1);
  }

  isServing(qp: number): boolean {
    return this.#active === qp;
  }

  reset(): void {
    while (!this.#arrived.isEmpty) this.#writer.finish(this.#arrived.pop());
    while (!this.#looped.isEmpty) this.#writer.finish(~this.#looped.pop());
    this.#active = -1;
    this.#responder!.reset();
    this.#acknowledgements!.reset();
  }

  #packetArrived(offset: number): void {
    const { domain, lp, config } = this.#core;
    const bytes = this.#port.rxWords[(offset >> 2) + WORD_PAYLOAD_BYTES]!;
    const intakeCycles = config.receiveLatencyCycles + Math.ceil(bytes / config.receiveBytesPerCycle);
    const cycle = domain.clock.cycleAfter(lp.nowPs) + intakeCycles;
    this.#arrived.push(offset, cycle);
    domain.wake(this.#stage, cycle);
  }

  /** A packet from this port to itself: it will be here at `arrivalCycle`. */
  #packetLooped(offset: number, arrivalCycle: number): void {
    const { domain, config } = this.#core;
    const bytes = this.#loopback.words[(offset >> 2) + WORD_PAYLOAD_BYTES]!;
    const cycle = arrivalCycle + config.receiveLatencyCycles + Math.ceil(bytes / config.receiveBytesPerCycle);
    this.#looped.push(offset, cycle);
    domain.wake(this.#stage, cycle);
  }

  /** Turns to the packet that has been there longer. A packet begun is finished first. */
  #selectSource(): void {
    const isLoopback = this.#looped.headCycle < this.#arrived.headCycle;
    if (isLoopback === this.#packets.isLoopback) return;
    this.#source = isLoopback ? this.#looped : this.#arrived;
    this.#packets.select(isLoopback);
  }

  #run(cycle: number): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#active === -1) this.#selectSource();
    const source = this.#source;
    if (source.headCycle > cycle) {
      this.account.rest(cycle);
      if (!source.isEmpty) this.wake(source.headCycle);
      return;
    }
    const bytes = this.#process(source.head, cycle);
    if (bytes === WAIT) return;
    const offset = source.pop();
    this.#release(offset);
    this.#active = -1;
    const { config } = this.#core;
    const busyCycles = Math.max(config.receivePacketCycles, Math.ceil(bytes / config.receiveBytesPerCycle));
    this.account.serve(cycle, busyCycles);
    const nextCycle = Math.min(this.#arrived.headCycle, this.#looped.headCycle);
    if (nextCycle < Number.POSITIVE_INFINITY) this.wake(Math.max(cycle + busyCycles, nextCycle));
  }

  /** The packet is worked off: its buffer is freed when its payload has left. */
  #release(offset: number): void {
    if (!this.#packets.isLoopback) return this.#writer.finish(offset);
    this.#loopback.received(offset);
    this.#writer.finish(~offset);
  }

  #process(offset: number, cycle: number): number {
    const { qps, qpcCache } = this.#core;
    if (this.#active === -1) {
      this.#active = this.#findQp(offset);
      if (this.#active === -1) return 0;
    }
    const qp = this.#active;
    if (!qpcCache.access(PORT_RECEIVER, qp, true)) {
      this.account.stall(cycle, STALL_CONTEXT);
      return WAIT;
    }
    if (qps.state[qp] === QpState.ERR || qps.state[qp]! < QpState.RTR) {
      this.#responder!.reset();
      this.#acknowledgements!.reset();
      return 0;
    }
    return this.#isRequest
      ? this.#responder!.process(offset, qp, cycle)
      : this.#acknowledgements!.process(offset, qp, cycle);
  }

  /** What is not addressed to this port, to a group or to whoever is there, strayed. */
  #isForUs(lid: number): boolean {
    return lid === this.#address.lid || lid >= FIRST_MULTICAST_LID || isOwnLid(this.#address, lid);
  }

  /** The QP a packet is for, if it can take it; else the packet is dropped and counted. */
  #findQp(offset: number): number {
    const { qps, violations } = this.#core;
    const word = offset >> 2;
    const words = this.#packets.rxWords;
    const opcode = words[word + WORD_OPCODE]!;
    if (!this.#isForUs(words[word + WORD_LIDS]! & 0xffff)) {
      violations.count('packetForeignLid');
      return -1;
    }
    const qp = qps.slotOf(words[word + WORD_DESTINATION_QPN]!);
    if (qp === -1) {
      violations.count('packetUnknownQp');
      return -1;
    }
    if (!isKnownOpcode(opcode) || opcode >= RC_OPCODES_END || !isReliableConnection(qps.serviceType[qp]!)) {
      violations.count('packetOpcode');
      return -1;
    }
    const state = qps.state[qp]!;
    const takesRequests = state >= QpState.RTR && state !== QpState.ERR;
    const takesResponses = takesRequests && state !== QpState.RTR;
    this.#isRequest = isRequest(opcode);
    if (this.#isRequest ? takesRequests : takesResponses) return qp;
    violations.count('packetQpState');
    return -1;
  }
}
