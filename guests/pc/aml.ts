/**
 * Bytes of the ACPI Machine Language, as far as the PC's table of devices needs them. Source: ACPI specification 6.5, chapter 20
 * (encoding) and section 6.4 (resource descriptors).
 */

type Bytes = readonly number[];

const ONE = 1;
const nameOp = 0x08;
const scopeOp = 0x10;
const bufferOp = 0x11;
const packageOp = 0x12;
const extendedOp = 0x5b;
const deviceOp = 0x82;
/** A name is four characters, of which the last may be fill. */
const SEGMENT = 4;
const rootCharacter = 0x5c;

export const little = (value: number, byteCount: number): number[] =>
  Array.from({ length: byteCount }, (_, byte) => Math.floor(value / 256 ** byte) % 256);

/** A name of one segment, absolute if it begins with a backslash. */
function nameOf(text: string): number[] {
  const isAbsolute = text.startsWith('\\');
  const segment = [...text.slice(isAbsolute ? 1 : 0).padEnd(SEGMENT, '_')].map((each) => each.charCodeAt(0));
  return isAbsolute ? [rootCharacter, ...segment] : segment;
}

/** PkgLength (20.2.4): counts its own bytes. */
function sized(body: Bytes): number[] {
  const short = body.length + ONE;
  if (short < 0x40) return [short, ...body];
  for (const extra of [1, 2, 3]) {
    const length = body.length + ONE + extra;
    if (length < 2 ** (4 + 8 * extra))
      return [(extra << 6) | (length & 0xf), ...little(Math.floor(length / 16), extra), ...body];
  }
  throw new RangeError(`a package of ${body.length} bytes`);
}

/** An integer in its shortest form. */
export function integer(value: number): number[] {
  if (value <= 1) return [value];
  if (value < 2 ** 8) return [0x0a, value];
  return value < 2 ** 16 ? [0x0b, ...little(value, 2)] : [0x0c, ...little(value, 4)];
}

export const named = (name: string, value: Bytes): number[] => [nameOp, ...nameOf(name), ...value];
export const scope = (name: string, ...body: Bytes[]): number[] => [
  scopeOp,
  ...sized([...nameOf(name), ...body.flat()]),
];
export const device = (name: string, ...body: Bytes[]): number[] => [
  extendedOp,
  deviceOp,
  ...sized([...nameOf(name), ...body.flat()]),
];
export const packageOf = (...elements: Bytes[]): number[] => [
  packageOp,
  ...sized([elements.length, ...elements.flat()]),
];

/** The identity of a device such as PNP0A08: three letters of 5 bits and four hexadecimal digits, big-endian. */
export function eisaId(text: string): number[] {
  const [a, b, c] = [...text.slice(0, 3)].map((letter) => letter.charCodeAt(0) - 0x40);
  const value = ((a! << 10) | (b! << 5) | c!) * 2 ** 16 + Number.parseInt(text.slice(3), 16);
  return [0x0c, ...little(value, 4).reverse()];
}

/** Resources of a device, as a buffer that ends with an end tag without a checksum. */
export function resources(...descriptors: Bytes[]): number[] {
  const body = [...descriptors.flat(), 0x79, 0];
  return [bufferOp, ...sized([...integer(body.length), ...body])];
}

const memoryRange = 0;
const ioRange = 1;
const busRange = 2;
/** Minimum and maximum are fixed. */
const fixedRange = 0b1100;

/** A word address space descriptor (6.4.3.5.3) that the bridge passes on. */
function wordRange(type: number, flags: number, from: number, to: number): number[] {
  const values = [0, from, to, 0, to - from + 1];
  return [0x88, ...little(13, 2), type, fixedRange, flags, ...values.flatMap((value) => little(value, 2))];
}

export const busNumbers = (from: number, to: number): number[] => wordRange(busRange, 0, from, to);
/** All addresses of the range, ISA or not. */
export const ioPorts = (from: number, to: number): number[] => wordRange(ioRange, 3, from, to);
/** A double-word address space descriptor (6.4.3.5.2): not cacheable, read and write. */
export function memoryWindow(from: number, to: number): number[] {
  const values = [0, from, to, 0, to - from + 1];
  return [0x87, ...little(23, 2), memoryRange, fixedRange, 1, ...values.flatMap((value) => little(value, 4))];
}
/** A fixed range of ports (6.4.2.5) that the device decodes itself. */
export const ownPorts = (from: number, count: number): number[] => [
  ...[0x47, 1],
  ...little(from, 2),
  ...little(from, 2),
  1,
  count,
];
/** A fixed range of memory (6.4.3.4) that the device decodes itself. */
export const ownMemory = (from: number, sizeBytes: number): number[] => [
  ...[0x86, ...little(9, 2), 1],
  ...little(from, 4),
  ...little(sizeBytes, 4),
];
