/** A bench of a switch whose end 0 sends requests of management, with bytes that are written and read by offset. */
import { viewOf } from '../../../base/index.ts';
import { benchSwitchLid, SwitchBench } from './switch-bench.ts';

export const usPs = 1_000_000;
/** The links are up by then. */
export const startPs = 50 * usPs;
/** Attributes of subnet management: IBTA volume 1, table 115. */
export const portInfo = 0x15;
export const pkeyTable = 0x16;
export const switchInfo = 0x12;

/** A LID-routed Set (2) or Get (1). */
export function smp(method: number, attribute: number, modifier: number, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(256);
  const view = viewOf(bytes);
  bytes.set([1, 1, 1, method]);
  view.setUint16(16, attribute);
  view.setUint32(20, modifier);
  bytes.set(data, 64);
  return bytes;
}

/** An attribute with these bytes by offset, zero elsewhere. */
export const infoOf = (fields: Readonly<Record<number, number>>): Uint8Array => {
  const data = new Uint8Array(64);
  for (const [offset, value] of Object.entries(fields)) data[Number(offset)] = value;
  return data;
};

export function tableOf(pkeys: readonly number[]): Uint8Array {
  const data = new Uint8Array(64);
  for (const [index, pkey] of pkeys.entries()) viewOf(data).setUint16(2 * index, pkey);
  return data;
}

export class ManagedBench {
  readonly bench: SwitchBench;
  #requestPs: number;

  constructor(bench = new SwitchBench(4)) {
    this.bench = bench;
    this.#requestPs = Math.max(startPs, bench.nowPs);
  }

  /** Sends a request of subnet management, and runs for 40 us. @returns the attribute of the response */
  async send(method: number, attribute: number, modifier: number, data: Uint8Array = new Uint8Array(64)) {
    const payload = smp(method, attribute, modifier, data);
    return (await this.#answer({ payload })).subarray(64, 128);
  }

  /** Sets the P_Key table of a port and the directions that it enforces. */
  async enforce(port: number, pkeys: readonly number[], directions: number): Promise<void> {
    await this.send(2, pkeyTable, port << 16, tableOf(pkeys));
    await this.send(2, portInfo, port, infoOf({ 43: directions }));
  }

  /** A datagram from an end to a LID. */
  async packet(from: number, lid: number, pkey: number, lane = 0): Promise<void> {
    this.bench.ends[from]!.sendDatagramAt(this.#requestPs, {
      ...{ payload: new Uint8Array(256), virtualLane: lane, serviceLevel: 3, partitionKey: pkey },
      ...{ sourceQpn: 0x1234, destinationQpn: 0x56_789a, sourceLid: from + 1, destinationLid: lid },
    });
    await this.#run();
  }

  /** PortCounters of a port: IBTA volume 1, 16.1.3.5. */
  async counters(port: number): Promise<Uint8Array> {
    const payload = new Uint8Array(256);
    payload.set([1, 4, 1, 1]);
    viewOf(payload).setUint16(16, 0x12);
    payload[65] = port;
    const general = { virtualLane: 0, sourceQpn: 1, destinationQpn: 1, queueKey: 0x8001_0000 };
    return (await this.#answer({ payload, ...general })).subarray(64, 128);
  }

  /** PortRcvConstraintErrors and PortXmitConstraintErrors of a port: bytes 17 and 16. */
  async constraintErrors(port: number): Promise<readonly number[]> {
    const counters = await this.counters(port);
    return [counters[17]!, counters[16]!];
  }

  /** PortXmitDiscards of a port: bytes 14 and 15. */
  async discards(port: number): Promise<number> {
    return viewOf(await this.counters(port)).getUint16(14);
  }

  countAt(end: number): number {
    return this.bench.ends[end]!.arrivals.length;
  }

  async #answer(datagram: Parameters<SwitchBench['ends'][number]['sendDatagramAt']>[1]): Promise<Uint8Array> {
    const [end] = this.bench.ends;
    const before = end!.arrivals.length;
    end!.sendDatagramAt(this.#requestPs, { sourceLid: 1, destinationLid: benchSwitchLid, ...datagram });
    await this.#run();
    return Uint8Array.from(end!.arrivals[before]!.payload);
  }

  async #run(): Promise<void> {
    this.#requestPs += 40 * usPs;
    await this.bench.runTo(this.#requestPs);
  }
}
