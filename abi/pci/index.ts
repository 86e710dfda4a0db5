/** Configuration space of a PCI Express endpoint: for the function that has it and for the software that programs it. */
export * from './aer-capability.ts';
export * from './capabilities.ts';
export * from './express-capability.ts';
export * from './msix-table.ts';
export * from './type0-header.ts';
