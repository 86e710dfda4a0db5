/**
 * The PC's host bridge: leads accesses of configuration space and of the PCI window to the functions that the PC adds to v86's
 * own bus, and places their BARs as firmware does.
 *
 *     ports 0xcf8 … 0xcff ─┐
 *     ECAM ────────────────┴─► PciFunction.configRead, configWrite           window ─► PciFunction.load, store
 */
import { BAR_REGISTER_OFFSET } from '../../abi/pci/index.ts';
import type { CoreCpu } from './core.ts';
import { ecamAddress, ecamBytes, windowAddress, windowBytes } from './memory-map.ts';
import type { AccessBytes, PciFunction } from './pci-function.ts';

const ABSENT = -1;
const deviceShift = 3;
/** v86's own functions that the PC does not show: a display and an IDE controller. */
const hiddenFunctions = [0x90, 0xf0];
const sizeProbe = 0xffff_ffff;
const barBits = 0xf;
const pairsOfBars = [0, 2];

export class PciHost {
  readonly #functions: readonly PciFunction[];
  readonly #byDevice: ReadonlyMap<number, PciFunction>;

  constructor(cpu: CoreCpu, functions: readonly PciFunction[]) {
    this.#functions = functions;
    this.#byDevice = new Map(functions.map((each) => [each.device, each]));
    this.#takePorts(cpu);
    cpu.io.mmap_register(
      ecamAddress,
      ecamBytes,
      (address) => this.#ecamRead(address >>> 0, 1),
      (address, value) => this.#ecamWrite(address >>> 0, value, 1),
      (address) => this.#ecamRead(address >>> 0, 4),
      (address, value) => this.#ecamWrite(address >>> 0, value, 4),
    );
    cpu.io.mmap_register(
      windowAddress,
      windowBytes,
      (address) => this.#load(address >>> 0, 1) & 0xff,
      (address, value) => this.#store(address >>> 0, value, 1),
      (address) => this.#load(address >>> 0, 4),
      (address, value) => this.#store(address >>> 0, value, 4),
    );
  }

  /** Gives every BAR an address in the window, aligned to its size; nothing is decoded yet. */
  placeBars(): void {
    let next = windowAddress;
    for (const each of this.#functions)
      for (const bar of pairsOfBars) {
        const register = BAR_REGISTER_OFFSET + 4 * bar;
        each.configWrite(register, sizeProbe, 4);
        const sizeBytes = (~(each.configRead(register, 4) & ~barBits) >>> 0) + 1;
        const address = Math.ceil(next / sizeBytes) * sizeBytes;
        each.configWrite(register, address, 4);
        each.configWrite(register + 4, 0, 4);
        next = address + sizeBytes;
      }
  }

  /** v86's methods get an access first for its own functions, and for those of the PC never. */
  #takePorts({ devices: { pci } }: CoreCpu): void {
    const query = pci.pci_query.bind(pci);
    const writes = {
      pci_write8: [pci.pci_write8.bind(pci), 1],
      pci_write16: [pci.pci_write16.bind(pci), 2],
      pci_write32: [pci.pci_write32.bind(pci), 4],
    } as const;
    for (const hidden of hiddenFunctions) pci.device_spaces[hidden] = undefined;
    pci.pci_query = () => {
      const routing = (pci.pci_addr[2]! << 8) | pci.pci_addr[1]!;
      const each = this.#at(routing);
      if (each === undefined) {
        query();
        return;
      }
      pci.pci_status32[0] = 1 << 31;
      pci.pci_response32[0] = each.configRead(pci.pci_addr[0]! & 0xfc, 4);
    };
    for (const name of ['pci_write8', 'pci_write16', 'pci_write32'] as const) {
      const [write, lengthBytes] = writes[name];
      pci[name] = (address, value) => {
        const routing = (address >>> 8) & 0xffff;
        const each = this.#at(routing);
        if (each !== undefined) each.configWrite(address & 0xff, value, lengthBytes);
        else if (pci.device_spaces[routing] !== undefined) write(address, value);
      };
    }
  }

  /** The function at a bus, device and function number: of bus 0, function 0. */
  #at(routing: number): PciFunction | undefined {
    return (routing & 7) === 0 ? this.#byDevice.get(routing >> deviceShift) : undefined;
  }

  #ecamRead(address: number, lengthBytes: AccessBytes): number {
    const offset = address - ecamAddress;
    const each = this.#at(offset >> 12);
    const value = each === undefined ? ABSENT : each.configRead(offset & 0xfff, lengthBytes);
    return lengthBytes === 1 ? value & 0xff : value;
  }

  #ecamWrite(address: number, value: number, lengthBytes: AccessBytes): void {
    const offset = address - ecamAddress;
    this.#at(offset >> 12)?.configWrite(offset & 0xfff, value, lengthBytes);
  }

  #load(address: number, lengthBytes: 1 | 4): number {
    return this.#functions.find((each) => each.decodes(address))?.load(address, lengthBytes) ?? ABSENT;
  }

  #store(address: number, value: number, lengthBytes: 1 | 4): void {
    this.#functions.find((each) => each.decodes(address))?.store(address, value, lengthBytes);
  }
}
