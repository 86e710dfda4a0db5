export * from './descriptors.ts';
export * from './frames.ts';
export * from './identity.ts';
export * from './interrupts.ts';
export * from './registers.ts';
export * from './system-dma.ts';
