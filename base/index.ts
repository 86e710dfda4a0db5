export * from './assert.ts';
export * from './bytes.ts';
export { type Decoded, type Initial, type Layout, type LayoutHeader, layout } from './layout.ts';
export type {
  AccessorOf,
  AccessorsOf,
  ArrayAccessor,
  BigAccessor,
  BytesAccessor,
  NestedAccessor,
  NumberAccessor,
} from './layout-accessor.ts';
export * from './layout-field.ts';
export type { ByteOrder } from './layout-schema.ts';
export type { DocRow } from './layout-text.ts';
export * from './registers.ts';
export * from './ring-index.ts';
export * from './units.ts';
