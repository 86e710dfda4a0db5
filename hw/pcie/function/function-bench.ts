/**
 * A test bench that is a miniature machine: a function at one end of a real link, a host at the other that acts as software
 * (configuration and register accesses, one after another) and records the TLPs of the device.
 */

import { type Cycles, defaultsOf, type Picoseconds } from '../../../base/index.ts';
import type { ConfigRequest } from '../link/index.ts';
import {
  type LinkBenchOptions,
  linkPair,
  memoryRead,
  memoryWrite,
  onReceive,
  runPair,
} from '../link/link-bench.ts';
import type { ConfigAccess } from '../root-complex/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  PAYLOAD_OFFSET,
  tlpRecord,
} from '../tlp/index.ts';
import { type FunctionConfig, functionParameters } from './function-parameters.ts';
import type { BarTarget } from './function-port.ts';
import type { MessageSender } from './msix.ts';
import { PcieFunction } from './pcie-function.ts';

export const BAR0 = 0x8_0000_0000;
export const BAR2 = 0x9_0000_0000;
/** Bus 1, device 0, function 0. */
export const FUNCTION_ID = 0x0100;
const ROOT_ID = 0x0008;
const REGISTER_CLASS = 12;
const CONFIG_CLASS = 13;
const MESSAGE_CLASS = 14;
const SETTLE_PS = 5_000_000;

interface Answer {
  readonly status: number;
  readonly bytes: number[];
  readonly byteCount: number;
  readonly completerId: number;
  readonly timePs: Picoseconds;
}

export interface BarAccess {
  readonly bar: number;
  readonly offset: number;
  readonly bytes: number[];
  readonly cycle: Cycles;
}

/** A device core of plain memory that records its accesses. */
export class RecordingTarget implements BarTarget {
  readonly writes: BarAccess[] = [];
  readonly reads: Omit<BarAccess, 'bytes'>[] = [];
  readonly resetCycles: number[] = [];
  /** Cycles for which every write occupies the write port. */
  occupiedCycles = 1;
  /** Called in the middle of a write. */
  onWrite: (cycle: Cycles) => void = () => {};

  barWrite(
    bar: number,
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: Cycles,
  ): number {
    this.writes.push({
      bar,
      offset,
      bytes: [...bytes.subarray(byteOffset, byteOffset + lengthBytes)],
      cycle,
    });
    this.onWrite(cycle);
    return this.occupiedCycles;
  }

  barRead(bar: number, offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void {
    this.reads.push({ bar, offset, cycle });
    for (let at = 0; at < lengthBytes; at++) into.setUint8(at, 0xa0 + ((offset + at) & 0xf));
  }

  functionReset(cycle: Cycles): void {
    this.resetCycles.push(cycle);
  }
}

/** A sender that takes messages while it has room. */
class RecordingSender implements MessageSender {
  readonly messages: { address: number; data: number; cycle: Cycles }[] = [];
  hasRoom = true;

  canSend(): boolean {
    return this.hasRoom;
  }

  sendMessage(address: number, data: number, cycle: Cycles): void {
    this.messages.push({ address, data, cycle });
  }
}

export function functionBench(
  changes: Partial<FunctionConfig> = {},
  linkOptions: LinkBenchOptions = {},
  gatewayAddress?: number,
) {
  const pair = linkPair(linkOptions);
  const config = { ...defaultsOf(functionParameters), ...changes };
  const domain = pair.deviceLp.addClockDomain(427);
  const target = new RecordingTarget();
  const sender = new RecordingSender();
  const fn = new PcieFunction({
    process: pair.deviceLp,
    domain,
    port: pair.device,
    config,
    link: pair.link,
    messageTrafficClass: MESSAGE_CLASS,
    gatewayAddress,
  });
  const reads = {
    pendingTagCount: 0,
    receiveCompletion: (offset: number): void => {
      fn.reportUnexpectedCompletion(offset);
      pair.device.consume(offset);
    },
  };
  fn.connect({ target, messageSender: sender, reads });
  pair.device.connect({
    receiver: fn.blocks.ingress,
    posted: [fn.blocks.egress],
    nonPosted: [],
    completion: [fn.blocks.egress],
  });
  /** The edge at which the device core acts when a test requests an action. */
  const cycleNow = (): number => domain.clock.cycleAtOrAfter(pair.deviceLp.nowPs);
  return {
    ...pair,
    cycleNow,
    devicePort: pair.device,
    config,
    domain,
    target,
    sender,
    reads,
    fn,
    ...hostSide(pair),
  };
}

/** A request of the host for the first dword of the function's configuration space. */
export const configRequest = (tag: number): ConfigRequest => ({
  targetId: FUNCTION_ID,
  register: 0,
  lengthBytes: 4,
  trafficClass: CONFIG_CLASS,
  tag,
  requesterId: ROOT_ID,
});

/** Software on the host, one request at a time. */
function hostSide(pair: ReturnType<typeof linkPair>) {
  const { host, hostLp, deviceLp, link } = pair;
  const answers = new Map<number, Answer>();
  const messages: number[] = [];
  let tag = 0;

  onReceive(host, (offset, kind) => {
    const { bytes } = host.reader;
    const tlp = tlpRecord.decode(bytes, offset);
    if (kind === COMPLETION || kind === COMPLETION_DATA) {
      const start = offset + PAYLOAD_OFFSET;
      answers.set(tlp.tag, {
        status: tlp.status,
        bytes: kind === COMPLETION_DATA ? [...bytes.subarray(start, start + tlp.lengthBytes)] : [],
        byteCount: tlp.byteCount,
        completerId: tlp.aux,
        timePs: tlp.arrivalPs,
      });
    } else if (kind === MESSAGE) {
      messages.push(tlp.aux);
    } else if (kind !== MEMORY_READ && kind !== MEMORY_WRITE) {
      throw new Error(`unexpected TLP of kind ${kind} at the host`);
    }
    host.consume(offset);
  });

  /** Runs both sides, and stops them at one instant: software on the host acts after its observations. */
  const run = (durationPs: Picoseconds): void => {
    const endPs = Math.max(deviceLp.nowPs, hostLp.nowPs) + durationPs;
    runPair(deviceLp, hostLp, link.latencyPs, endPs);
    deviceLp.nowPs = endPs;
    hostLp.nowPs = endPs;
  };
  const settle = (): void => run(SETTLE_PS);
  const answerTo = (asked: number): Answer | undefined => {
    settle();
    return answers.get(asked);
  };
  const nextTag = (): number => {
    tag = (tag + 1) & 0xff;
    answers.delete(tag);
    return tag;
  };

  const configRead = (register: number, lengthBytes: number, id = FUNCTION_ID): Answer | undefined => {
    const asked = nextTag();
    host.sendConfigRead({ ...configRequest(asked), targetId: id, register, lengthBytes });
    return answerTo(asked);
  };
  const configWrite = (
    register: number,
    lengthBytes: number,
    value: number,
    id = FUNCTION_ID,
  ): Answer | undefined => {
    const asked = nextTag();
    host.sendConfigWrite({ ...configRequest(asked), targetId: id, register, lengthBytes, value });
    return answerTo(asked);
  };
  const read = (address: number, lengthBytes: number): Answer | undefined => {
    const asked = nextTag();
    memoryRead(host, {
      address,
      trafficClass: REGISTER_CLASS,
      lengthBytes,
      tag: asked,
      requesterId: ROOT_ID,
    });
    return answerTo(asked);
  };
  const write = (address: number, bytes: readonly number[], flags = 0): void => {
    memoryWrite(host, {
      address,
      trafficClass: REGISTER_CLASS,
      source: Uint8Array.from(bytes),
      lengthBytes: bytes.length,
      flags,
    });
    settle();
  };
  const littleEndian = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
  const answeredValue = (answer: Answer | undefined): number =>
    (answer?.bytes ?? []).reduceRight((value, byte) => value * 256 + byte, 0);

  /** Configuration registers and device registers as a driver sees them. */
  const software = {
    config: (register: number, lengthBytes = 4): number => answeredValue(configRead(register, lengthBytes)),
    setConfig: (register: number, lengthBytes: number, value: number): void => {
      configWrite(register, lengthBytes, value);
    },
    register: (address: number): number => answeredValue(read(address, 4)),
    setRegister: (address: number, value: number): void => write(address, littleEndian(value)),
    /** BAR0 and BAR2 at their addresses of this bench, memory space and bus mastering on. */
    enable: (): void => {
      configWrite(0x10, 4, BAR0 % 2 ** 32);
      configWrite(0x14, 4, Math.floor(BAR0 / 2 ** 32));
      configWrite(0x18, 4, BAR2 % 2 ** 32);
      configWrite(0x1c, 4, Math.floor(BAR2 / 2 ** 32));
      configWrite(0x04, 2, 0x0006);
    },
  };
  const access: ConfigAccess = {
    readConfig32: async (id, offset) => {
      const answer = configRead(offset, 4, id);
      return answer === undefined || answer.status !== 0 ? 0xffff_ffff : answeredValue(answer);
    },
    writeConfig32: async (id, offset, value) => {
      configWrite(offset, 4, value, id);
    },
  };
  return { answers, messages, run, settle, configRead, configWrite, read, write, software, access };
}

/** The same once software has placed its BARs and enabled memory space and bus mastering. */
export function enabledBench(...options: Parameters<typeof functionBench>): ReturnType<typeof functionBench> {
  const bench = functionBench(...options);
  bench.software.enable();
  return bench;
}
