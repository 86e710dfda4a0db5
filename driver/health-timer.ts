/**
 * The health timer of a device: finds failures that nothing else would report.
 *
 *   every interval ── alive? ─┬─ error buffer: a code, or all ones ──► the device dies
 *                             └─ entries in an event queue not taken since the last check ──► served
 *                  └─ away? ──── vendor id readable again ──► the driver probes it
 *
 * The first check is Linux' (mlx4 catas.c, interface sheet 2.6); the second is what Linux does for newer adapters when an
 * interrupt is lost. The timer stops after `healthIdleTicks` checks without a finding or a use of the driver, and restarts at
 * the next use. So a machine whose threads all wait in vain ends with a DeadlockError.
 */
import { swap32, usToPs } from '../base/index.ts';
import type { Device } from './device.ts';
import type { EventQueue } from './event-queue.ts';
import type { DriverConfig } from './parameters.ts';
import { isConfigured, isPresent } from './pci.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const allOnes = 0xffff_ffff;

/** The device that the timer watches. */
export interface Patient {
  /** The probed device; undefined while no device is probed. */
  readonly current: Device | undefined;
  /** Whether the driver would use the device again if it reappeared. */
  readonly isAway: boolean;
  /** The device answers again. */
  comeBack(cpu: Cpu): Promise<void>;
}

export class HealthTimer {
  /** Checks made, and event queues found with entries that no interrupt had announced. */
  tickCount = 0;
  recoveredCount = 0;
  private readonly platform: DriverPlatform;
  private readonly config: DriverConfig;
  private readonly patient: Patient;
  private isRunning = false;
  private isStopped = true;
  private idleTicks = 0;
  private activity = 0;
  private seenActivity = 0;
  /** Events taken out of each queue at the last check, where entries were waiting. */
  private readonly waiting = new Map<EventQueue, number>();

  constructor(platform: DriverPlatform, config: DriverConfig, patient: Patient) {
    this.platform = platform;
    this.config = config;
    this.patient = patient;
  }

  /** Starts monitoring the device. */
  start(): void {
    this.isStopped = false;
    this.used();
  }

  stop(): void {
    this.isStopped = true;
  }

  /** The driver was used: resumes the checks if they had stopped. */
  used(): void {
    this.activity++;
    if (!this.isRunning && !this.isStopped) this.arm();
  }

  private arm(): void {
    const { startTimer } = this.platform;
    if (startTimer === undefined) return;
    this.isRunning = true;
    startTimer.call(this.platform, usToPs(this.config.healthIntervalUs), () => this.due(), 'health');
  }

  private due(): void {
    this.isRunning = false;
    if (this.isStopped) return;
    this.idleTicks = this.activity === this.seenActivity ? this.idleTicks + 1 : 0;
    this.seenActivity = this.activity;
    this.platform.spawn('health', async (cpu) => {
      await this.check(cpu);
      await cpu.settle();
      if (!this.isStopped && !this.isRunning && this.idleTicks < this.config.healthIdleTicks) this.arm();
    });
  }

  private async check(cpu: Cpu): Promise<void> {
    this.tickCount++;
    const { current } = this.patient;
    if (current !== undefined) {
      await this.examine(cpu, current);
    } else if (this.patient.isAway && (await isPresent(cpu, this.platform))) {
      await this.patient.comeBack(cpu);
    }
  }

  private async examine(cpu: Cpu, device: Device): Promise<void> {
    const word = await cpu.mmioRead32(this.errorBufferAddress(device));
    if (device.lifecycle.isDead || word === 0) {
      await this.recoverEvents(cpu, device);
    } else if (word !== allOnes || (await isConfigured(cpu, this.platform))) {
      device.lifecycle.die(`catastrophic error 0x${swap32(word).toString(16)}`);
    } else {
      device.lifecycle.die('the device is gone: all its registers read as ones');
    }
  }

  /** Serves queues whose entries have waited since the last check. */
  private async recoverEvents(cpu: Cpu, device: Device): Promise<void> {
    for (const queue of [device.asyncEq, ...device.completionEqs]) {
      const hasWaited = this.waiting.get(queue) === queue.handledEvents;
      this.waiting.delete(queue);
      if (!queue.hasEntries) continue;
      if (hasWaited) {
        this.recoveredCount++;
        this.platform.log?.(`${device.name}: event queue ${queue.eqn} had entries and no interrupt`);
        this.activity++;
        await queue.handleInterrupt(cpu);
      } else {
        this.waiting.set(queue, queue.handledEvents);
        this.activity++;
      }
    }
  }

  private errorBufferAddress({ firmware }: Device): number {
    const bar = this.platform.pci.bars[firmware.catastrophicBufferBar * 2]!;
    return bar.address + Number(firmware.catastrophicBufferOffset);
  }
}
