export { Iommu, type IommuFault, type IommuFaultReason } from './iommu.ts';
export { type IommuConfig, iommuParameters } from './parameters.ts';
