export * from './address.ts';
export * from './assert.ts';
export { BlockCopier, copyShort } from './block-copy.ts';
export * from './bytes.ts';
export { codeOf } from './error-code.ts';
export { immutable } from './immutable.ts';
export { type Decoded, type Initial, type Layout, layout } from './layout.ts';
export { leavesOf } from './layout-check.ts';
export * from './layout-field.ts';
export { floatIndexOf, wordIndexOf } from './layout-record.ts';
export { MAC_BYTES, macBytesOf, macOfBytes } from './mac-address.ts';
export {
  type ImagedMemory,
  ImageError,
  type MemoryImage,
  ObjectImage,
  seesPrivateFields,
} from './object-image.ts';
export {
  asInteger,
  type ChoiceParameter,
  type ConfigOf,
  choice,
  defaultsOf,
  type FlagParameter,
  flag,
  type NumberParameter,
  number,
  type Parameter,
  type ParameterTable,
  powerOfTwo,
} from './parameter.ts';
export { ReflectedCrc } from './reflected-crc.ts';
export { type PlacedBank, RegisterFile, type RegisterHooks } from './register-file.ts';
export * from './registers.ts';
export * from './ring-index.ts';
export { outsideOfMicrotasks, type RuntimeThread, runtime, type TextSink, useRuntime } from './runtime.ts';
export { sha256Hex } from './sha256.ts';
export { textOfThrown } from './thrown.ts';
export * from './units.ts';
export { visible } from './visible.ts';
export type { Wide } from './wide.ts';
