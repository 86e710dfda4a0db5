/**
 * Firmware of the PC: puts a kernel, its initial file system and its parameters into memory, and the processor at the kernel's
 * 32-bit entry. There is no BIOS; the ACPI tables take its place.
 *
 * Sources: Linux Documentation/arch/x86/boot.rst (32-bit boot protocol), zero-page.rst; System V ABI, chapter 5 (program
 * headers).
 */
import { ConfigurationError } from '../../base/index.ts';
import { acpiTables, type WiredDevice } from './acpi-tables.ts';
import type { CoreCpu } from './core.ts';
import {
  bootParametersAddress,
  commandLineAddress,
  ecamAddress,
  ecamBytes,
  highMemoryStart,
  lowMemoryEnd,
  tablesAddress,
} from './memory-map.ts';

/** The software that a PC boots. */
export interface BootFiles {
  /** The kernel as its package has it, whose setup header is passed on. */
  readonly bzImage: Uint8Array;
  /** The kernel's own ELF file for i386: the contents of the image, decompressed. */
  readonly vmlinux: Uint8Array;
  readonly initramfs: Uint8Array;
  readonly commandLine: string;
}

const PAGE_BYTES = 4096;
const setupHeader = 0x1f1;
/** Offset of the byte whose value, from the offset after it, is the end of the header. */
const setupHeaderEnd = 0x201;
const parameterBytes = 4096;
/** Offsets in the boot parameters. */
const parameter = {
  ...{ rsdpAddress: 0x070, mapCount: 0x1e8, loader: 0x210, loadFlags: 0x211, initramfsAddress: 0x218 },
  ...{ initramfsBytes: 0x21c, commandLine: 0x228, map: 0x2d0 },
} as const;
const unknownLoader = 0xff;
const loadedHigh = 1;
const usable = 1;
const reserved = 2;

const elfClass32 = 1;
const machine386 = 3;
const loadable = 1;

/**
 * Puts a kernel and its files into memory, and the processor at its entry.
 * @throws ConfigurationError naming the file
 * @internal
 */
export function loadForBoot(cpu: CoreCpu, files: BootFiles, wired: readonly WiredDevice[]): void {
  const memory = cpu.mem8;
  const entry = loadKernel(memory, files.vmlinux);
  const tables = acpiTables(wired);
  memory.set(tables, tablesAddress);
  const initramfsAddress = Math.floor((memory.length - files.initramfs.length) / PAGE_BYTES) * PAGE_BYTES;
  if (initramfsAddress < entry.end)
    throw new ConfigurationError(
      'initial file system',
      files.initramfs.length,
      `at most ${memory.length - entry.end} bytes, which memory has left beside the kernel`,
    );
  memory.set(files.initramfs, initramfsAddress);
  memory.set(new TextEncoder().encode(`${files.commandLine}\0`), commandLineAddress);
  memory.set(bootParameters(files, initramfsAddress, memory.length), bootParametersAddress);
  enter(cpu, entry.address);
}

/** Puts a kernel's segments at their physical addresses. @throws ConfigurationError */
function loadKernel(
  memory: Uint8Array,
  vmlinux: Uint8Array,
): { readonly address: number; readonly end: number } {
  const view = new DataView(vmlinux.buffer, vmlinux.byteOffset, vmlinux.byteLength);
  if (
    view.getUint32(0) !== 0x7f454c46 ||
    vmlinux[4] !== elfClass32 ||
    view.getUint16(18, true) !== machine386
  )
    throw new ConfigurationError('kernel', 'another file', 'a 32-bit ELF file for i386');
  const [table, size, count] = [view.getUint32(28, true), view.getUint16(42, true), view.getUint16(44, true)];
  let end = 0;
  for (let at = table; at < table + size * count; at += size) {
    if (view.getUint32(at, true) !== loadable) continue;
    const word = (offset: number): number => view.getUint32(at + offset, true);
    const [fileOffset, physical, fileBytes, memoryBytes] = [word(4), word(12), word(16), word(20)];
    if (physical + memoryBytes > memory.length)
      throw new ConfigurationError(
        'kernel',
        physical + memoryBytes,
        `at most ${memory.length} bytes, the memory`,
      );
    memory.set(vmlinux.subarray(fileOffset, fileOffset + fileBytes), physical);
    end = Math.max(end, physical + memoryBytes);
  }
  return { address: view.getUint32(24, true), end };
}

function bootParameters(files: BootFiles, initramfsAddress: number, memoryBytes: number): Uint8Array {
  const bytes = new Uint8Array(parameterBytes);
  const view = new DataView(bytes.buffer);
  const headerEnd = setupHeaderEnd + 1 + files.bzImage[setupHeaderEnd]!;
  bytes.set(files.bzImage.subarray(setupHeader, headerEnd), setupHeader);
  bytes[parameter.loader] = unknownLoader;
  bytes[parameter.loadFlags]! |= loadedHigh;
  view.setUint32(parameter.rsdpAddress, tablesAddress, true);
  view.setUint32(parameter.initramfsAddress, initramfsAddress, true);
  view.setUint32(parameter.initramfsBytes, files.initramfs.length, true);
  view.setUint32(parameter.commandLine, commandLineAddress, true);
  const ranges = [
    [0, lowMemoryEnd, usable],
    [lowMemoryEnd, highMemoryStart, reserved],
    [highMemoryStart, memoryBytes, usable],
    [ecamAddress, ecamAddress + ecamBytes, reserved],
  ] as const;
  bytes[parameter.mapCount] = ranges.length;
  for (const [index, [from, to, type]] of ranges.entries()) {
    const at = parameter.map + 20 * index;
    view.setUint32(at, from, true);
    view.setUint32(at + 8, to - from, true);
    view.setUint32(at + 16, type, true);
  }
  return bytes;
}

const ESI = 6;
const CS = 1;
const segmentCount = 6;
/** Selectors of the boot protocol. */
const codeSelector = 0x10;
const dataSelector = 0x18;
const protectedMode = 1;
const flagsAtEntry = 2;

/** Protected mode with flat segments, interrupts off, and the address of the boot parameters in ESI. */
function enter(cpu: CoreCpu, address: number): void {
  cpu.reg32.fill(0);
  cpu.reg32[ESI] = bootParametersAddress;
  cpu.cr[0] = protectedMode;
  cpu.protected_mode[0] = 1;
  cpu.flags[0] = flagsAtEntry;
  cpu.is_32[0] = 1;
  cpu.stack_size_32[0] = 1;
  cpu.cpl[0] = 0;
  for (let segment = 0; segment < segmentCount; segment++) {
    cpu.segment_is_null[segment] = 0;
    cpu.segment_offsets[segment] = 0;
    cpu.segment_limits[segment] = 0xffff_ffff;
    cpu.sreg[segment] = segment === CS ? codeSelector : dataSelector;
  }
  cpu.apic_enabled[0] = 1;
  cpu.instruction_pointer[0] = address;
  cpu.update_state_flags();
}
