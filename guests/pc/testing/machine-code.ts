/** Kernels of a few instructions for the PC: an ELF file whose only segment is their code. */
import type { BootFiles } from '../boot.ts';

/** Where the code of {@link kernelOf} begins. */
export const codeAddress = 0x20_0000;
const headerBytes = 52;
const programHeaderBytes = 32;

/** Files with which a PC executes these bytes, in protected mode with flat segments and interrupts off. */
export function kernelOf(code: readonly number[]): BootFiles {
  const bytes = new Uint8Array(headerBytes + programHeaderBytes + code.length);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 1, 1, 1]);
  view.setUint16(16, 2, true);
  view.setUint16(18, 3, true);
  view.setUint32(24, codeAddress, true);
  view.setUint32(28, headerBytes, true);
  view.setUint16(42, programHeaderBytes, true);
  view.setUint16(44, 1, true);
  const segment = [
    1,
    headerBytes + programHeaderBytes,
    codeAddress,
    codeAddress,
    code.length,
    code.length,
    7,
    1,
  ];
  for (const [index, word] of segment.entries()) view.setUint32(headerBytes + 4 * index, word, true);
  bytes.set(code, headerBytes + programHeaderBytes);
  const bzImage = new Uint8Array(1024);
  bzImage[0x201] = 0x6a;
  return { bzImage, vmlinux: bytes, initramfs: Uint8Array.of(1, 2, 3), commandLine: 'quiet' };
}

const dword = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);

/** Instructions, as the Intel SDM, volume 2, encodes them. */
export const code = {
  /** mov eax, [address] */
  load: (address: number): number[] => [0xa1, ...dword(address)],
  /** mov al, [address] */
  loadByte: (address: number): number[] => [0xa0, ...dword(address)],
  /** mov [address], eax */
  store: (address: number): number[] => [0xa3, ...dword(address)],
  /** mov eax, value */
  set: (value: number): number[] => [0xb8, ...dword(value)],
  /** mov ecx, count; dec ecx; jnz -3 */
  countDown: (count: number): number[] => [0xb9, ...dword(count), 0x49, 0x75, 0xfd],
  /** mov dx, port; out dx, eax */
  portStore: (port: number): number[] => [0x66, 0xba, port & 0xff, port >> 8, 0xef],
  /** mov dx, port; in eax, dx */
  portLoad: (port: number): number[] => [0x66, 0xba, port & 0xff, port >> 8, 0xed],
  /** mov ebx, eax */
  keep: [0x89, 0xc3],
  /** rdtsc */
  readClock: [0x0f, 0x31],
  /** rdrand eax */
  random: [0x0f, 0xc7, 0xf0],
  halt: [0xf4],
  /** jmp to itself */
  forever: [0xeb, 0xfe],
} as const;
