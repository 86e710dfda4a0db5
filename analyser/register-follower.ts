/**
 * BAR0: register accesses by name and field, and their effects: commands, resets, the owner, the MSI-X table. QUERY_FW
 * gives the offsets of registers without a fixed address. Source: interface sheet 2.
 */
import { bar0, commandNameOf, hcr, hcrGoOffset, msix } from '../abi/index.ts';
import { msixTableEntry } from '../abi/pci/index.ts';
import { swap32, viewOf } from '../base/index.ts';
import type { CommandRegister } from './follow/command-register.ts';
import type { DeviceView } from './follow/device-view.ts';
import { anyLayout, fieldsSetIn, fieldText } from './layout-fields.ts';
import type { Trace } from './trace.ts';
import { hex } from './trace-event.ts';
import { nsText } from './trace-text.ts';

const { clearInterrupt, clock } = bar0.registers;
const hcrBase = bar0.registers.hcr.offset;
const tableBytes = msixTableEntry.sizeBytes;
const { fields: entry } = msixTableEntry;

/** Effects of BAR0 accesses on the rest of the analyser. */
export interface RegisterEffects {
  reset(why: string, nowPs: number): void;
  released(nowPs: number): void;
  hcrAccess(lengthBytes: number, nowPs: number): void;
}

interface RegisterLoad {
  readonly offset: number;
  readonly address: number;
  readonly lengthBytes: number;
  readonly status: number;
  readonly value: number;
  readonly nowPs: number;
}

const allOnes = 0xffff_ffff;

const hcrWords = [
  'in_param high',
  'in_param low',
  'in_mod',
  'out_param high',
  'out_param low',
  'token',
  'go',
];

export class RegisterFollower {
  readonly #trace: Trace;
  readonly #view: DeviceView;
  readonly #commands: CommandRegister;
  readonly #effects: RegisterEffects;
  #lastLoad: RegisterLoad | undefined;
  #repeats = 0;
  #repeatedPs = 0;
  readonly #table = new Uint8Array(msix.vectorCount * tableBytes);
  readonly #tableView = viewOf(this.#table);

  constructor(trace: Trace, view: DeviceView, commands: CommandRegister, effects: RegisterEffects) {
    this.#trace = trace;
    this.#view = view;
    this.#commands = commands;
    this.#effects = effects;
  }

  /** Starts a new epoch: subtracts `ps` from every stored time. */
  rebase(ps: number): void {
    this.#repeatedPs -= ps;
  }

  /** The vector whose table entry holds this message, or -1. */
  vectorOf(address: number, data: number): number {
    for (let vector = 0; vector < msix.vectorCount; vector++) {
      const base = vector * tableBytes;
      const high = entry.addressHigh.get(this.#tableView, base);
      const entryAddress = high * 0x1_0000_0000 + entry.addressLow.get(this.#tableView, base);
      if (entry.data.get(this.#tableView, base) === data && entryAddress === address) return vector;
    }
    return -1;
  }

  store(offset: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const { name, start } = this.#registerAt(offset);
    if (this.#trace.wants('mmio')) {
      this.flush(nowPs);
      const text = `BAR0 ${hex(offset).padEnd(7)} ${this.#describe(name, offset - start, bytes, '<-')}`;
      this.#trace.emit('mmio', nowPs, text, { address, lengthBytes: bytes.length });
    }
    if (name === 'hcr') {
      if (bytes.length !== 4) this.#effects.hcrAccess(bytes.length, nowPs);
      this.#commands.store(offset - hcrBase, bytes, nowPs);
    } else if (name === 'reset' && (bytes[3]! & 1) === 1)
      this.#effects.reset('a write of the reset register', nowPs);
    else if (name === 'owner') this.#effects.released(nowPs);
    else if (name === 'msixTable')
      this.#table.set(bytes.subarray(0, this.#table.length - (offset - start)), offset - start);
  }

  load(
    offset: number,
    address: number,
    lengthBytes: number,
    status: number,
    value: number,
    nowPs: number,
  ): void {
    const { name, start } = this.#registerAt(offset);
    if (status !== 0 || value === allOnes || (name === 'catastrophicBuffer' && value !== 0))
      this.#view.isGone = true;
    this.#showLoad(name, start, { offset, address, lengthBytes, status, value, nowPs });
    if (name !== 'hcr' || status !== 0) return;
    if (lengthBytes !== 4) this.#effects.hcrAccess(lengthBytes, nowPs);
    this.#commands.load(offset - hcrBase, value, nowPs);
  }

  /** A polling driver reads the same value repeatedly: the trace has it once, with the number of reads. */
  #showLoad(name: string, start: number, load: RegisterLoad): void {
    if (!this.#trace.wants('mmio')) return;
    const { offset, address, lengthBytes, status, value, nowPs } = load;
    const last = this.#lastLoad;
    if (last?.offset === offset && last.value === value && last.status === status) {
      this.#repeats++;
      this.#repeatedPs = nowPs;
      return;
    }
    this.flush(nowPs);
    this.#lastLoad = load;
    const bytes = new Uint8Array(4);
    viewOf(bytes).setUint32(0, value, true);
    const what = this.#describe(name, offset - start, bytes.subarray(0, lengthBytes), 'reads');
    const failed = status === 0 ? '' : ` (failed, status ${status})`;
    const text = `BAR0 ${hex(offset).padEnd(7)} ${what}${failed}`;
    this.#trace.emit('mmio', nowPs, text, { address, lengthBytes });
  }

  /** Writes the line that was held back. */
  flush(nowPs: number): void {
    if (this.#repeats > 0 && this.#lastLoad !== undefined) {
      const { offset, address, lengthBytes } = this.#lastLoad;
      const times = `${this.#repeats} time${this.#repeats === 1 ? '' : 's'}`;
      const text = `BAR0 ${hex(offset).padEnd(7)} read again ${times}, the same, until ${nsText(this.#trace.instantOf(this.#repeatedPs))}`;
      this.#trace.emit('mmio', nowPs, text, { address, lengthBytes });
    }
    this.#repeats = 0;
    this.#lastLoad = undefined;
  }

  /** Returns the register at an offset: first those that QUERY_FW placed, then those at fixed addresses. */
  #registerAt(offset: number): { readonly name: string; readonly start: number } {
    const { firmware } = this.#view;
    if (firmware !== undefined) {
      const placed: readonly (readonly [string, number, number])[] = [
        ['clearInterrupt', Number(firmware.clearInterruptOffset), clearInterrupt.sizeBytes],
        [
          'catastrophicBuffer',
          Number(firmware.catastrophicBufferOffset),
          firmware.catastrophicBufferDwords * 4,
        ],
        ['clock', Number(firmware.clockOffset), clock.sizeBytes],
      ];
      for (const [name, start, sizeBytes] of placed)
        if (offset >= start && offset < start + sizeBytes) return { name, start };
    }
    const name = bar0.nameAt(offset);
    return name === undefined ? { name: '', start: offset } : { name, start: bar0.registers[name].offset };
  }

  #describe(name: string, within: number, bytes: Uint8Array, verb: string): string {
    const value = littleEndianOf(bytes);
    const big = bytes.length === 4 ? swap32(value) : value;
    switch (name) {
      case 'hcr':
        return `HCR ${hcrWords[within >> 2]} ${verb} ${this.#hcrWord(within, big)}`;
      case 'msixTable': {
        const field = ['address', 'address high', 'data', 'vector control'][(within % tableBytes) >> 2]!;
        return `MSI-X entry ${Math.floor(within / tableBytes)} ${field} ${verb} ${hex(value)}`;
      }
      case 'owner':
        return `owner ${verb} ${hex(value)}${verb === 'reads' ? ownership(value, 'the device') : ': released'}`;
      case 'semaphore':
        return `semaphore ${verb} ${hex(value)}${verb === 'reads' ? ownership(value, 'the semaphore') : ': released'}`;
      case 'reset':
        return `reset ${verb} ${hex(big)}${(big & 1) === 1 ? ': the device is reset' : ''}`;
      case 'catastrophicBuffer':
        return `error buffer[${within >> 2}] ${verb} ${hex(big)}`;
      case 'clearInterrupt':
        return `clear interrupt[${within >> 2}] ${verb} ${hex(big)}`;
      default:
        return `${name === '' ? 'no register' : name} ${verb} ${hex(value)}`;
    }
  }

  /** Decodes the last dword into fields; the others are plain numbers. */
  #hcrWord(within: number, value: number): string {
    if (within !== hcrGoOffset) return hex(value);
    const registers = new Uint8Array(hcr.sizeBytes);
    viewOf(registers).setUint32(hcrGoOffset, value);
    const { opcode } = hcr.decode(registers);
    if (opcode === 0) return hex(value);
    const others = fieldsSetIn(anyLayout(hcr), registers).filter(({ name }) => name !== 'opcode');
    const words = [commandNameOf(opcode) ?? `opcode ${hex(opcode)}`, ...others.map(fieldText)];
    return `${hex(value)} (${words.join(' ')})`;
  }
}

const ownership = (value: number, what: string): string => (value === 0 ? `: ${what} is ours` : ': taken');

/** Little-endian value of a register access of at most 8 bytes. */
function littleEndianOf(bytes: Uint8Array): number {
  let value = 0;
  for (let at = Math.min(bytes.length, 6) - 1; at >= 0; at--) value = value * 256 + bytes[at]!;
  return value;
}
