/** Ethernet with segmentation and received checksums, which mlx4_en turns into features. */
import { testScenario } from './suite.ts';

await testScenario('ethernet-offloads', 'debian');
