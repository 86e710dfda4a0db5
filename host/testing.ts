/**
 * A host without a device, for specs: the root complex is a port that records its requests with their instants, and answers
 * loads after a fixed time. A spec opens and closes it to make back-pressure.
 */

import { defaultsOf } from '../base/parameter.ts';
import type { Picoseconds } from '../base/units.ts';
import { PHASE_SOFTWARE } from '../sim/event-queue.ts';
import { LogicalProcess } from '../sim/logical-process.ts';
import { SingleRunner } from '../sim/single-runner.ts';
import type { AccessDone, DevicePort, StoreSender } from './device-port.ts';
import { Host, type HostOptions } from './host.ts';
import { type HostConfig, hostParameters } from './host-parameters.ts';

export interface RecordedStore {
  readonly atPs: Picoseconds;
  readonly core: number;
  readonly address: number;
  readonly trafficClass: number;
  readonly bytes: number[];
}

export class RecordingPort implements DevicePort {
  readonly stores: RecordedStore[] = [];
  readonly loads: { readonly atPs: Picoseconds; readonly address: number }[] = [];
  readonly loadLatencyPs = 1_000_000;
  /** Stores that the port accepts before it is full. */
  room = Number.POSITIVE_INFINITY;
  /** Answers to loads and configuration reads. */
  answer: (address: number) => { readonly status: number; readonly value: number } = (address) => ({
    status: 0,
    value: address,
  });

  readonly #process: LogicalProcess;
  readonly #core: number;
  #stores: StoreSender | undefined;

  constructor(process: LogicalProcess, core: number) {
    this.#process = process;
    this.#core = core;
  }

  canStore(): boolean {
    return this.room > 0;
  }

  cpuStore(address: number, trafficClass: number, source: Uint8Array, offset: number, length: number): void {
    if (this.room === 0) throw new RangeError('a store was given although the port had no room');
    this.room--;
    const bytes = [...source.subarray(offset, offset + length)];
    this.stores.push({ atPs: this.#process.nowPs, core: this.#core, address, trafficClass, bytes });
  }

  connect({ stores }: { readonly stores: StoreSender }): void {
    this.#stores = stores;
  }

  cpuLoad(address: number, _lengthBytes: number, done: AccessDone): void {
    this.loads.push({ atPs: this.#process.nowPs, address });
    const { status, value } = this.answer(address);
    at(this.#process, this.#process.nowPs + this.loadLatencyPs, () => done(status, value), PHASE_SOFTWARE);
  }

  cpuConfigRead(functionId: number, offset: number, done: AccessDone): void {
    this.cpuLoad(functionId * 4096 + offset, 4, done);
  }

  cpuConfigWrite(functionId: number, offset: number, _value: number, done: AccessDone): void {
    this.cpuLoad(functionId * 4096 + offset, 4, done);
  }

  /** Makes room for more stores, and notifies the sender. */
  open(room = Number.POSITIVE_INFINITY): void {
    this.room = room;
    this.#stores?.storeSpace();
  }
}

/** Runs `action` at an instant, in its hardware half unless specified otherwise. */
export function at(process: LogicalProcess, atPs: Picoseconds, action: () => void, phase = 0): void {
  process.queue.schedule(atPs, process.queue.addHandler(action, phase));
}

export interface TestHost {
  readonly host: Host;
  readonly process: LogicalProcess;
  readonly ports: readonly RecordingPort[];
  /** Runs until all programs have ended and 1 ps more. */
  runToEnd(): Promise<void>;
  runTo(limitPs: Picoseconds): Promise<void>;
}

/** A host of 64 MiB and two cores of 2.5 GHz (400 ps a cycle), with parts of its configuration replaced. */
export function newTestHost(
  parts: { readonly [Part in keyof HostConfig]?: Partial<HostConfig[Part]> } = {},
  options: Partial<HostOptions> & { readonly shuffle?: () => number } = {},
): TestHost {
  const process = new LogicalProcess('host', options.shuffle);
  const config: HostConfig = {
    memory: { ...defaultsOf(hostParameters.memory), sizeMib: 64, ...parts.memory },
    core: { ...defaultsOf(hostParameters.core), count: 2, storeSpaceKib: 64, ...parts.core },
    interrupt: { ...defaultsOf(hostParameters.interrupt), ...parts.interrupt },
    cost: { ...defaultsOf(hostParameters.cost), ...parts.cost },
    paging: { ...defaultsOf(hostParameters.paging), ...parts.paging },
    swap: { ...defaultsOf(hostParameters.swap), ...parts.swap },
    fileDevice: { ...defaultsOf(hostParameters.fileDevice), ...parts.fileDevice },
    tlb: { ...defaultsOf(hostParameters.tlb), ...parts.tlb },
  };
  const ports = Array.from({ length: config.core.count }, (_, core) => new RecordingPort(process, core));
  const host = new Host({
    logicalProcess: process,
    config,
    connect: () => (core) => ports[core]!,
    busMap: { trafficClassAt: (address) => address % 2 },
    ...options,
  });
  const runner = new SingleRunner([process]);
  return {
    host,
    process,
    ports,
    runToEnd: async () => {
      await runner.runUntilEnded(1);
    },
    runTo: async (limitPs) => {
      await runner.runTo(limitPs);
    },
  };
}
