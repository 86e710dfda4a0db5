export { Iommu } from './iommu.ts';
export { iommuParameters } from './parameters.ts';
