/*
 * A server made with Fedify, for fedify_test.c.
 *
 *     node fedify.mjs <folder with node_modules>
 *
 * It writes its port and serves http://fedi.localhost:<port> on loopback until
 * its input ends: the actor /users/fred, its inbox, and /control/ for the test:
 *
 *     GET  /control/send?to=<actor>&style=<cavage|rfc9421>&type=<Follow|Create>
 *          what the receiver answered is the answer: 200, or 502 with the error
 *     GET  /control/forge?to=<inbox>&style=...  signed, then another body; the
 *          receiver's status
 *     GET  /control/received   [{"id", "type", "style"}], in order
 *     GET  /control/tamper     from now on bodies are changed on their way in
 */
import dns from "node:dns";
import http from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const require = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

/* *.localhost is this machine, whatever the resolver thinks. */
const lookup = dns.lookup;
dns.lookup = (host, options, done) => {
	const local = host.endsWith(".localhost") ? "127.0.0.1" : host;
	return lookup(local, options, done);
};

const fedify = await load("@fedify/fedify");
const vocab = await load("@fedify/vocab");
const pairs = [
	await fedify.generateCryptoKeyPair("RSASSA-PKCS1-v1_5"),
	await fedify.generateCryptoKeyPair("Ed25519"),
];
const specs = {
	cavage: "draft-cavage-http-signatures-12",
	rfc9421: "rfc9421",
};
const received = [];
let tamper = false;
let number = 0;
let origin;

function site(style) {
	const federation = fedify.createFederation({
		kv: new fedify.MemoryKvStore(),
		allowPrivateAddress: true,
		firstKnock: specs[style],
	});
	federation
		.setActorDispatcher("/users/{identifier}", async (ctx, identifier) => {
			if (identifier !== "fred") return null;
			const keys = await ctx.getActorKeyPairs(identifier);
			return new vocab.Person({
				id: ctx.getActorUri(identifier),
				preferredUsername: identifier,
				inbox: ctx.getInboxUri(identifier),
				endpoints: new vocab.Endpoints({ sharedInbox: ctx.getInboxUri() }),
				publicKey: keys[0].cryptographicKey,
				assertionMethods: keys.map((key) => key.multikey),
			});
		})
		.setKeyPairsDispatcher(() => pairs);
	federation
		.setInboxListeners("/users/{identifier}/inbox", "/inbox")
		.on(vocab.Activity, (ctx, activity) => {
			received.push({
				id: activity.id?.href,
				type: activity.constructor.name,
				style: ctx.data.style,
			});
		});
	return federation;
}

const sites = { cavage: site("cavage"), rfc9421: site("rfc9421") };

function activity(type, to) {
	const id = new URL(`${origin}/activities/${++number}`);
	const actor = new URL(`${origin}/users/fred`);
	if (type === "Follow")
		return new vocab.Follow({ id, actor, object: new URL(to) });
	return new vocab.Create({
		id,
		actor,
		tos: [new URL(to)],
		object: new vocab.Note({ content: "hello from Fedify" }),
	});
}

/* Without a queue it delivers at once, and throws what went wrong. */
async function send(query) {
	const to = query.get("to");
	const ctx = sites[query.get("style")].createContext(new URL(origin), {});
	const recipient = { id: new URL(to), inboxId: new URL(`${to}/inbox`) };
	try {
		await ctx.sendActivity({ identifier: "fred" }, recipient,
			activity(query.get("type"), to));
		return [200, "sent"];
	} catch (error) {
		return [502, String(error)];
	}
}

async function forge(query) {
	const to = query.get("to");
	const body = JSON.stringify({
		"@context": "https://www.w3.org/ns/activitystreams",
		id: `${origin}/activities/${++number}`,
		type: "Create",
		actor: `${origin}/users/fred`,
		object: { type: "Note", content: "one thing" },
	});
	const signed = await fedify.signRequest(
		new Request(to, {
			method: "POST",
			headers: { "content-type": "application/activity+json" },
			body,
		}),
		pairs[0].privateKey,
		new URL(`${origin}/users/fred#main-key`),
		{ spec: specs[query.get("style")] },
	);
	const answers = [];
	for (const text of [body, body.replace("one thing", "two ducks")]) {
		const answer = await fetch(to, {
			method: "POST",
			headers: signed.headers,
			body: text,
		});
		answers.push(answer.status);
	}
	return [200, answers.join(" ")];
}

async function control(url) {
	switch (url.pathname) {
	case "/control/send":
		return await send(url.searchParams);
	case "/control/forge":
		return await forge(url.searchParams);
	case "/control/tamper":
		tamper = true;
		return [200, "tampering"];
	default:
		return [200, JSON.stringify(received)];
	}
}

async function body_of(request) {
	const pieces = [];
	for await (const piece of request) pieces.push(piece);
	const body = Buffer.concat(pieces);
	return tamper ? Buffer.concat([body, Buffer.from(" ")]) : body;
}

async function answer(request, response) {
	const url = new URL(request.url, origin);
	if (url.pathname.startsWith("/control/")) {
		const [status, text] = await control(url);
		response.writeHead(status, {
			"content-type": "text/plain",
			"content-length": Buffer.byteLength(text),
		});
		response.end(text);
		return;
	}
	const style = request.headers["signature-input"] ? "rfc9421" : "cavage";
	const reply = await sites.cavage.fetch(
		new Request(url, {
			method: request.method,
			headers: request.headers,
			body: request.method === "POST" ? await body_of(request) : undefined,
		}),
		{ contextData: { style } },
	);
	response.writeHead(reply.status, Object.fromEntries(reply.headers));
	response.end(Buffer.from(await reply.arrayBuffer()));
}

const server = http.createServer((request, response) => {
	answer(request, response).catch((error) => {
		response.writeHead(500);
		response.end(String(error?.stack ?? error));
	});
});
server.listen(0, "127.0.0.1", () => {
	origin = `http://fedi.localhost:${server.address().port}`;
	process.stdout.write(`${server.address().port}\n`);
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
