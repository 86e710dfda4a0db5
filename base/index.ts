export * from './assert.ts';
export * from './bytes.ts';
export { type Decoded, type Initial, layout } from './layout.ts';
export * from './layout-field.ts';
export * from './registers.ts';
export * from './ring-index.ts';
export * from './units.ts';
