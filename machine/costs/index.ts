/** Interface of this room: see README.md. */

export { MarkedOperations } from './marked-operations.ts';
export {
  CostsOverflowError,
  type DeviceCost,
  joinCosts,
  type NodeCosts,
  type OperationCost,
  type OtherCost,
} from './operation-cost.ts';
