/**
 * The kernel's agent for general services or subnet management, as ib_mad: sends MADs on QP1 or QP0, and hands each that arrives to its consumer on a
 * kernel thread. A MAD that finds the send queue full waits here, in order; it is dropped if too many wait already. MADs may be
 * lost; the consumer repeats them.
 *
 *   interrupt ── CQ event ──► kernel thread: take completions ─► receive(mad) ─► … ─► post what waits ─► arm
 *
 * A MAD costs the core what a command costs (`commandPost` to send, `commandComplete` to handle): an estimate.
 */
import { mad } from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import type { Device } from '../device.ts';
import type { Cpu } from '../platform.ts';
import type { ManagementService } from './management-headers.ts';
import { type MadAddress, ManagementQueuePair, type ReceivedMad } from './management-queue-pair.ts';

/** Receives a MAD of its class. It must not wait. */
type MadReceiver = (cpu: Cpu, mad: ReceivedMad) => void;

/** The consumer of each class of MADs. */
export type MadConsumers = ReadonlyMap<number, MadReceiver>;

/** Limit of MADs that wait for room in the send queue: 16 times its capacity. */
const waitingMax = 2048;

export class MadAgent {
  /** MADs posted to the device, received from it, of a class without a consumer, failed, and dropped because too many waited. */
  readonly counts = { sent: 0, received: 0, unclaimed: 0, failed: 0, overflowed: 0 };
  readonly #device: Device;
  readonly #consumers: MadConsumers;
  #pair!: ManagementQueuePair;
  readonly #waiting: { readonly bytes: Uint8Array; readonly to: MadAddress }[] = [];
  #isScheduled = false;
  #isClosed = false;

  private constructor(device: Device, consumers: MadConsumers) {
    this.#device = device;
    this.#consumers = consumers;
  }

  /** @throws KernelError ENOMEM */
  static async open(
    cpu: Cpu,
    device: Device,
    consumers: MadConsumers,
    service: ManagementService = 'general',
  ): Promise<MadAgent> {
    const agent = new MadAgent(device, consumers);
    agent.#pair = await ManagementQueuePair.open(cpu, device, () => agent.#schedule(), service);
    return agent;
  }

  /** Stops sending, and drops received MADs from now on. */
  async close(cpu: Cpu): Promise<void> {
    this.#isClosed = true;
    await this.#pair.close(cpu);
  }

  /** Sends 256 bytes to the same QP of a port. */
  send(cpu: Cpu, bytes: Uint8Array, to: MadAddress): void {
    if (this.#isClosed || this.#device.lifecycle.isDead) return;
    if (this.#waiting.length === waitingMax) {
      this.counts.overflowed++;
      return;
    }
    cpu.charge('driver', this.#device.platform.costs.commandPost);
    this.#waiting.push({ bytes, to });
    this.#postWaiting(cpu);
  }

  #postWaiting(cpu: Cpu): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#pair.post(cpu, next.bytes, next.to)) return;
      this.#waiting.shift();
      this.counts.sent++;
    }
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    this.#device.platform.spawn('ib_mad', (cpu) => this.#work(cpu));
  }

  async #work(cpu: Cpu): Promise<void> {
    const { costs } = this.#device.platform;
    while (!this.#isClosed) {
      await cpu.settle();
      const completion = this.#pair.take(cpu);
      if (completion === undefined) break;
      if (completion === 'failed') this.counts.failed++;
      if (typeof completion === 'string') {
        this.#postWaiting(cpu);
        continue;
      }
      this.counts.received++;
      cpu.charge('driver', costs.commandComplete);
      const receive = this.#consumers.get(mad.fields.managementClass.get(viewOf(completion.bytes), 0));
      if (receive === undefined) this.counts.unclaimed++;
      else receive(cpu, completion);
    }
    this.#isScheduled = false;
    if (!this.#isClosed) this.#pair.arm(cpu);
    await cpu.settle();
  }
}
