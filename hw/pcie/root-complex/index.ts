export type { CorePort } from './core-port.ts';
export {
  type ConfigAccess,
  checkWindows,
  type EnumeratedFunction,
  enumerateFunction,
  enumerationParameters,
} from './enumerate.ts';
export { RootComplex } from './root-complex.ts';
export { rootComplexWires } from './root-complex-blocks.ts';
export type { StoreSender } from './root-complex-core-queue.ts';
export * from './root-complex-interfaces.ts';
export * from './root-complex-parameters.ts';
export {
  attachTap,
  type LinkTap,
  type TappedCompletion,
  type TappedData,
  type TappedRequest,
} from './root-complex-tap.ts';
