// An HTTP server of Node's that answers each request with its body. Prints
// its port; ends when its standard input does.
import http from 'node:http';

const server = http.createServer((request, response) => {
	const parts = [];

	request.on('data', (part) => parts.push(part));
	request.on('end', () => {
		const body = Buffer.concat(parts);

		response.writeHead(200, { 'Content-Length': body.length });
		response.end(body);
	});
});

// Node's own answer to an unknown expectation, but with a length.
server.on('checkExpectation', (request, response) => {
	response.writeHead(417, { 'Content-Length': 0, Connection: 'close' });
	response.end();
});

// A client that has closed its side still gets all its answers.
server.httpAllowHalfOpen = true;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
