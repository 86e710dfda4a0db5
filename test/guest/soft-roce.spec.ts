import { testScenario } from './suite.ts';

await testScenario('soft-roce', 'debian');
