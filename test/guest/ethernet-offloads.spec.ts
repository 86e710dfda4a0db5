/** The same with segmentation and received checksums, which mlx4_en makes features of. */
import { testScenario } from './suite.ts';

await testScenario('ethernet-offloads', 'debian');
