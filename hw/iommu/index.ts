export { Iommu } from './iommu.ts';
export { iommuWires } from './iommu-blocks.ts';
export { iommuParameters } from './parameters.ts';
